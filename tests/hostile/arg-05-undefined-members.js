// case: ARG-05
// expect: ok
// args: {"a":null,"list":[null]}
// calls: box.echo=1
await box.echo({ a: null, b: undefined, list: [undefined] });
