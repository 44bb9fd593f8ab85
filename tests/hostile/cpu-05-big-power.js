// case: CPU-05
// expect: limit:cpu | limit:time | limit:memory | script_error | engine_fault
// limits: guest_cpu_ms_max=300
// why: one native operation that never comes back to the interpreter
let n = 3n;
for (let i = 0; i < 40; i++) n = n * n;
return String(n).length;
