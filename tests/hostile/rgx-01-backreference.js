// case: RGX-01
// expect: limit:cpu | limit:time | ok
// limits: guest_cpu_ms_max=300
return /^(.*)(.*)(.*)(.*)\1\2\3\4x$/.test("a".repeat(200));
