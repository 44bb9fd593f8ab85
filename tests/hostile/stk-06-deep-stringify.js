// case: STK-06
// expect: limit:stack | script_error | engine_fault | limit:payload
// limits: guest_cpu_ms_max=3000 run_wall_ms_max=4000
let o = {};
for (let i = 0; i < 100_000; i++) o = { o };
return JSON.stringify(o).length;
