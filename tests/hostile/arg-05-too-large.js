// case: ARG-05
// expect: limit:payload | script_error
// limits: args_bytes_max=10000
// calls: box.echo=0
await box.echo({ text: "t".repeat(20_000) });
