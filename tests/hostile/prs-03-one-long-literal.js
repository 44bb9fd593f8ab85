// case: PRS-03
// expect: limit:source
// limits: run_wall_ms_max=20000
// expand: yes
return "{{"x" * 10485760}}".length;
