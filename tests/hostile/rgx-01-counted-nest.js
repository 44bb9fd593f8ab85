// case: RGX-01
// expect: limit:cpu | limit:time | limit:memory | script_error | engine_fault | ok
// limits: guest_cpu_ms_max=300
// why: the compiled form of a small pattern may be huge
return new RegExp("((((a{1,99}){1,99}){1,99}){1,99}){1,99}").test("a".repeat(100));
