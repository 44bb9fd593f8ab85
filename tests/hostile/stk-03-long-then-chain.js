// case: STK-03
// expect: ok | limit:cpu | limit:time | limit:memory
// limits: guest_cpu_ms_max=4000 run_wall_ms_max=5000 guest_memory_bytes_max=134217728
// value: 100000
let p = Promise.resolve(0);
for (let i = 0; i < 100_000; i++) p = p.then((n) => n + 1);
return await p;
