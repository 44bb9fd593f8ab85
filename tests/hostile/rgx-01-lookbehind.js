// case: RGX-01
// expect: limit:cpu | limit:time | ok
// limits: guest_cpu_ms_max=300
return /(?<=(?:a+)+b)c$/.test("a".repeat(50) + "c");
