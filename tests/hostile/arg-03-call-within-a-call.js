// case: ARG-03
// expect: ok
// value: [{"outer":1},{"inner":true}]
// calls: box.echo=2
// why: a call made while the arguments of another are read is a call of its own
let inner;
const outer = await box.echo({
  get outer() {
    inner = box.echo({ inner: true });
    return 1;
  },
});
return [outer, await inner];
