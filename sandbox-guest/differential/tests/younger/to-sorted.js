// ECMA-262, 23.1.3.34 Array.prototype.toSorted ( comparator )
const f = Array.prototype.toSorted;
same([f.length, f.name, 'prototype' in f], [1, 'toSorted', false]);
throws(TypeError, () => new f());

// Step 1: the comparator is checked first.
for (const bad of [null, 5, 'f', {}, [], Symbol(), 1n, true]) {
  throws(TypeError, () => f.call({ get length() { throw new RangeError() } }, bad));
}
same([2, 1].toSorted(undefined), [1, 2]);

// Steps 2 to 4: any object with a length; the result is a plain array with that length.
throws(TypeError, () => f.call(null));
throws(TypeError, () => f.call(undefined));
same(f.call({ length: 3, 0: 'c', 2: 'a' }), ['a', 'c', undefined]);
same(f.call({ length: '2', 0: 2, 1: 1, 2: 0 }), [1, 2]);
same(f.call({ length: -1, 0: 1 }), []);
same(f.call({ length: NaN }), []);
same(f.call('cba'), ['a', 'b', 'c']);
same(f.call(5), []);
throws(RangeError, () => f.call({ length: 2 ** 32 }));
throws(RangeError, () => f.call({ length: 2 ** 53 }));
throws(TypeError, () => f.call({ length: 1n }));
{
  class Own extends Array { static get [Symbol.species]() { throw new RangeError() } }
  const made = Own.from([2, 1]).toSorted();
  same(Object.getPrototypeOf(made) === Array.prototype, true);
  same(made, [1, 2]);
  const list = [2, 1];
  list.constructor = { get [Symbol.species]() { throw new RangeError() } };
  same(list.toSorted(), [1, 2]);
}

// Step 6: SortIndexedProperties reads through holes; the list is not changed.
{
  const holes = [3, , 1, , 2];
  const made = holes.toSorted();
  same(made, [1, 2, 3, undefined, undefined]);
  same([3 in made, 4 in made, 1 in holes], [true, true, false]);
  Array.prototype[1] = 2.5;
  try { same(holes.toSorted(), [1, 2, 2.5, 3, undefined]) } finally { delete Array.prototype[1] }
  const frozen = Object.freeze([2, 1]);
  same(frozen.toSorted(), [1, 2]);
  same(Object.isFrozen(frozen.toSorted()), false);
  const read = [];
  const watched = new Proxy(['b', 'a'], { get(t, k) { read.push(k); return t[k] }, has() { throw new RangeError() } });
  same(f.call(watched), ['a', 'b']);
  same(read, ['length', '0', '1']);
}
{
  const list = [3, 2, 1];
  const made = list.toSorted((a, b) => { list.length = 0; return a - b });
  same([made, list], [[1, 2, 3], []]);
}

// 23.1.3.30.2 CompareArrayElements
same([undefined, 'b', undefined, 'a'].toSorted(() => -1).slice(2), [undefined, undefined]);
same([1, 10, 9, 2].toSorted(), [1, 10, 2, 9]);
same(['\ud83d\ude00', '\uffff', 'é', 'a'].toSorted(), ['a', 'é', '\ud83d\ude00', '\uffff']);
same([true, null, 'm', undefined].toSorted(), ['m', null, true, undefined]);
throws(TypeError, () => [Symbol(), 1].toSorted());
same(typeof [Symbol()].toSorted()[0], 'symbol');
throws(RangeError, () => [1, 2].toSorted(() => { throw new RangeError() }));
same([1].toSorted(() => { throw new RangeError() }), [1]);
throws(TypeError, () => [1, 2].toSorted(() => 1n));
throws(TypeError, () => [1, 2].toSorted(() => Symbol()));
same([3, 1, 2].toSorted(() => NaN), [3, 1, 2]);
same([3, 1, 2].toSorted(() => undefined), [3, 1, 2]);
same([3, 1, 2].toSorted((a, b) => ({ valueOf: () => a - b })), [1, 2, 3]);
same([3, 1, 2].toSorted((a, b) => String(b - a)), [3, 2, 1]);
[2, 1].toSorted(function () { same(this, undefined); same(arguments.length, 2); return 0 });

// Equal items keep their order, in long lists too.
{
  const rows = Array.from({ length: 600 }, (_, at) => ({ key: at * 7919 % 7, at }));
  for (const made of [rows.toSorted((a, b) => a.key - b.key), rows.toSorted((a, b) => a.key < b.key ? -1 : a.key > b.key ? 1 : 0)]) {
    same(made.length, 600);
    same(made.every((row, i) => !i || made[i - 1].key < row.key || (made[i - 1].key === row.key && made[i - 1].at < row.at)), true);
  }
}

// 23.2.3.33 %TypedArray%.prototype.toSorted ( comparator )
{
  const g = Object.getPrototypeOf(Uint8Array.prototype).toSorted;
  same([g.length, g.name], [1, 'toSorted']);
  throws(TypeError, () => g.call([2, 1]));
  throws(TypeError, () => new Uint8Array([2, 1]).toSorted(null));
  const list = new Float64Array([NaN, 2, -0, 0, -Infinity, 1]);
  same([...list.toSorted()], [-Infinity, -0, 0, 1, 2, NaN]);
  same(Object.is(list.toSorted()[1], -0), true);
  same([...list.toSorted((a, b) => 0)], [...list]);
  same([...new Uint8Array([3, 1, 2]).toSorted((a, b) => b - a)], [3, 2, 1]);
  same([...new BigInt64Array([3n, -1n]).toSorted((a, b) => (a < b ? -1 : 1))], [-1n, 3n]);
  class Own extends Uint8Array { static get [Symbol.species]() { throw new RangeError() } }
  same(Object.getPrototypeOf(new Own([2, 1]).toSorted()) === Uint8Array.prototype, true);
  const gone = new Uint8Array([2, 1]);
  detach(gone.buffer);
  throws(TypeError, () => gone.toSorted());
  throws(TypeError, () => gone.toSorted((a, b) => a - b));
}
