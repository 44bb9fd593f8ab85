// case: RGX-03
// expect: limit:cpu | limit:time | ok
// limits: guest_cpu_ms_max=300
// calls: box.pattern=1
const { pattern } = await box.pattern({});
return new RegExp(pattern).test("a".repeat(40) + "!");
