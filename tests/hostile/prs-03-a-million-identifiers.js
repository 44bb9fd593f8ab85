// case: PRS-03
// expect: limit:source
// limits: run_wall_ms_max=20000
// expand: yes
let a = 0;
{{"a;" * 1000000}}
