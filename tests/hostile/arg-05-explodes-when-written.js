// case: ARG-05
// expect: limit:payload | script_error | limit:cpu | limit:memory
// limits: args_bytes_max=100000 guest_cpu_ms_max=1500
// calls: box.echo=0
let o = "0123456789";
for (let i = 0; i < 40; i++) o = [o, o];
await box.echo({ o });
