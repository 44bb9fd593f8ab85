// case: ARG-05
// expect: script_error
// name: TypeError
// calls: box.echo=0
const a = {};
a.deep = { again: a };
await box.echo(a);
