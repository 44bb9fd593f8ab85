// case: RGX-01
// expect: limit:cpu | limit:time | ok
// limits: guest_cpu_ms_max=300
return /^(a|aa|a?)*b$/.test("a".repeat(60) + "c");
