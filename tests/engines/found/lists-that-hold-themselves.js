// Found in the text of a list that holds itself: one engine went on until its stack was full.
const list = [1, 2];
list.push(list, 3);
log(String(list));
log(list.join('-'));
log(`${[list, [list], list]}`);
const [one, two] = [['one'], ['two']];
one.push(two);
two.push(one);
log([String(one), String(two), one.toLocaleString(), one + '|' + two]);
const failing = ['a', { toString() { throw new RangeError('no text') } }];
attempt(() => failing.join());
failing.pop();
log(failing.join());
const like = { length: 2, 0: 'a', join: Array.prototype.join, toString: Array.prototype.toString };
like[1] = like;
log(String(like));
log([[], [[]], [[[]], [[], []]]].join(';'));
