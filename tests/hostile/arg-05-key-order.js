// case: ARG-05
// expect: ok
// args: {"a":1,"b":2,"z":3,"é":4}
// calls: box.echo=1
await box.echo({ z: 3, b: 2, é: 4, a: 1 });
