// case: CPU-06
// expect: ok
// value: [[1,2,10],[10,2,1],[1,10,2,null],["a1","a2","b1","b2"],[1,2,3],3,["TypeError","TypeError"]]
// why: what is put in the place of the engine's own sort sorts like it
const name = (f) => {
  try {
    f();
  } catch (e) {
    return e.name;
  }
};
const sparse = [3, , 1];
sparse.sort();
return [
  [10, 1, 2].sort((a, b) => a - b),
  Uint8Array.of(1, 10, 2).sort((a, b) => b - a),
  [undefined, 2, 10, 1].sort(),
  ["b1", "a1", "b2", "a2"].sort((x, y) => x.charCodeAt(0) - y.charCodeAt(0)),
  [3, 1, 2].toSorted(),
  sparse.length - Number(2 in sparse),
  [name(() => [].sort(1)), name(() => Uint8Array.prototype.sort.call([]))],
];
