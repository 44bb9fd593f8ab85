// case: ARG-05
// expect: script_error
// calls: box.echo=0
await box.echo({ list: [1, NaN] });
