// case: PRS-03
// expect: ok | limit:cpu | limit:time | limit:memory | script_error | engine_fault
// limits: guest_cpu_ms_max=2000 run_wall_ms_max=3000
// expand: yes
var {{"a," * 100000}}b = 1;
return b;
