// case: ARG-05
// expect: ok
// args: {"n":[1,1,1,0,1e21,0.1]}
// calls: box.echo=1
await box.echo({ n: [1, 1.0, 1e0, -0, 1e21, 0.1] });
