// case: ARG-03
// expect: ok
// value: [{"outer":1},"denied"]
// calls: box.echo=1 box.forbidden=0
let inner;
const outer = await box.echo({
  get outer() {
    inner = box.forbidden({}).catch((e) => e.code);
    return 1;
  },
});
return [outer, await inner];
