// case: ARG-05
// check: warn
// expect: script_error
// name: TypeError
// calls: box.echo=0
await box.echo([1, 2]);
