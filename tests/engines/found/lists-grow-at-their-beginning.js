// Not found, but written for what `unshift` moves: every length and number of items, and lists that
// are not plain.
let sum = 0;
const count = (list) => { for (let at = 0; at < list.length; at++) sum = (sum * 31 + (list[at]?.at ?? 7) + at) % 1000003; sum = (sum + list.length) % 1000003 };
for (let length = 0; length < 12; length++) {
  for (let more = 0; more < 9; more++) {
    const list = Array.from({ length }, (_, at) => ({ at }));
    const items = Array.from({ length: more }, (_, at) => ({ at: 50 + at }));
    log(list.unshift(...items));
    count(list);
    log(list.push({ at: 99 }));
    log(list.shift());
    count(list);
  }
}
log(sum);
const holes = [1, , 3];
log([holes.unshift('a', 'b'), holes, Object.keys(holes)]);
const longer = [1, 2];
longer.length = 4;
log([longer.unshift(0), longer, Object.keys(longer)]);
const itself = ['x'];
itself.unshift(itself, itself[0]);
log([itself.length, itself[0] === itself, itself[1], itself[2]]);
attempt(() => Object.freeze([1, 2]).unshift(0));
attempt(() => Object.freeze([1, 2]).unshift());
attempt(() => Object.seal([1, 2]).unshift(0));
const fixed = [1, 2];
Object.defineProperty(fixed, 'length', { writable: false });
attempt(() => fixed.unshift(0));
log(fixed);
class Own extends Array {}
const own = Own.of(1, 2);
log([own.unshift(0), own, own instanceof Own]);
const like = { length: 1, 0: 'a' };
log([Array.prototype.unshift.call(like, 'b', 'c'), like]);
const long = [];
for (let at = 0; at < 3000; at++) long.unshift(at);
log([long.length, long[0], long[1500], long[2999]]);
