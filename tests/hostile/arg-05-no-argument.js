// case: ARG-05
// expect: ok
// args: {}
// calls: box.echo=1
await box.echo();
