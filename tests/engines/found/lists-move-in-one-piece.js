// Not found, but written for what moves items: every length, place and number, with items that are
// there twice, at copyWithin as well, and lists that are not plain.
const made = (length) => Array.from({ length }, (_, at) => ({ at }));
let sum = 0;
const count = (list) => { for (let at = 0; at < list.length; at++) sum = (sum * 31 + (list[at]?.at ?? 7) + at) % 1000003; sum = (sum + list.length) % 1000003 };
for (let length = 0; length < 8; length++) {
  for (let at = 0; at <= length; at++) {
    for (let gone = 0; gone <= length - at; gone++) {
      for (const more of [[], [{ at: 50 }], [{ at: 50 }, { at: 51 }, { at: 52 }]]) {
        const list = made(length);
        count(list.splice(at, gone, ...more));
        count(list);
        list.push({ at: 99 });
        count(list);
      }
      const list = made(length);
      count(list.copyWithin(at, at + gone));
      count(list.concat(list).copyWithin(at, at + gone, length));
    }
  }
}
log(sum);
const holes = [1, , 3, , 5, 6];
log(holes.splice(1, 2));
log(holes);
const longer = [1, 2, 3, 4];
longer.length = 6;
log(longer.splice(0, 2));
log(longer);
attempt(() => Object.freeze([1, 2, 3]).splice(0, 1));
const texts = ['a', 'b', 'c', 'd'];
log(texts.splice(0, 3, texts));
log(texts.length);
const kept = [{ a: 1 }, { b: 2 }, { c: 3 }, { d: 4 }];
const [, second] = kept;
kept.splice(0, 2);
log([second, kept]);
const last = [1, 2, 3];
log([delete last[2], last.length, 2 in last, last.push(4), last, delete last[3], last.pop(), last]);
log([delete last[1], delete last[0], last, Object.keys(last), last.push('a', 'b'), last]);
