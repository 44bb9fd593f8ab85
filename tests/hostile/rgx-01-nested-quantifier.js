// case: RGX-01
// expect: limit:cpu | limit:time | ok
// limits: guest_cpu_ms_max=300
return /^(a+)+$/.test("a".repeat(40) + "!");
