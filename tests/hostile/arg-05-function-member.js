// case: ARG-05
// expect: script_error
// name: TypeError
// calls: box.echo=0
await box.echo({ callback: () => 1 });
