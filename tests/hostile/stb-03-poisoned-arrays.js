// case: STB-03
// expect: ok
// value: {"list":[1,2,3]}
for (const name of ["push", "map", "forEach", "join", "slice", Symbol.iterator]) {
  Array.prototype[name] = () => {
    throw new Error("poisoned");
  };
}
return await box.echo({ list: [1, 2, 3] });
