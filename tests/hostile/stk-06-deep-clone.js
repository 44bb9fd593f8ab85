// case: STK-06
// expect: limit:stack | script_error | engine_fault | ok
// limits: guest_cpu_ms_max=3000 run_wall_ms_max=4000
let a = [];
for (let i = 0; i < 50_000; i++) a = [a];
return structuredClone(a).length;
