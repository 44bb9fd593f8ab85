// case: ARG-01
// expect: ok
// value: {"n":1}
// calls: box.echo=1
let n = 0;
return await box.echo({
  toJSON() {
    return { n: ++n };
  },
});
