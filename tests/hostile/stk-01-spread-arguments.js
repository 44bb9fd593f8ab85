// case: STK-01
// expect: limit:stack | limit:memory | script_error | engine_fault | ok
// limits: run_wall_ms_max=4000 guest_cpu_ms_max=3000
const many = new Array(400_000).fill(1);
return Math.max(...many);
