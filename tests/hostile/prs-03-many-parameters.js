// case: PRS-03
// expect: script_error | ok | limit:cpu | limit:time | limit:memory | engine_fault
// limits: guest_cpu_ms_max=2000 run_wall_ms_max=3000
// expand: yes
// why: below the source limit, so that the parser sees it
return typeof ((...a) => (function ({{"a," * 100000}}a) { return a; })(...a));
