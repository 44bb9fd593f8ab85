// case: PRS-03
// expect: ok | limit:cpu | limit:time | limit:memory | engine_fault
// limits: guest_cpu_ms_max=2500 run_wall_ms_max=3500
// expand: yes
let a = 0;
{{"a++;" * 100000}}
return a;
