// case: ARG-05
// expect: limit:payload | script_error
// limits: json_depth_max=32
// calls: box.echo=0
let a = 1;
for (let i = 0; i < 100; i++) a = [a];
await box.echo({ a });
