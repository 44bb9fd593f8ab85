// case: ARG-05
// expect: script_error
// calls: box.echo=0
await box.echo({ n: 1e309 });
