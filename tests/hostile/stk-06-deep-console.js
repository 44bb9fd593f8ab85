// case: STK-06
// expect: ok | limit:stack | script_error | engine_fault
// limits: guest_cpu_ms_max=3000 run_wall_ms_max=4000
let a = [];
for (let i = 0; i < 50_000; i++) a = [a];
console.log(a);
return 1;
