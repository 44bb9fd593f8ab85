// case: STK-06
// expect: ok | limit:memory | limit:stack | limit:cpu | limit:time | engine_fault
// limits: guest_cpu_ms_max=2500 run_wall_ms_max=3500 guest_memory_bytes_max=134217728
// value: true
// why: the collector must not walk a long chain by recursion
let chain = null;
for (let i = 0; i < 300_000; i++) chain = { chain };
chain = null;
for (let i = 0; i < 50_000; i++) chain = {};
return true;
