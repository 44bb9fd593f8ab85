// case: STK-06
// expect: ok | limit:stack | limit:cpu | limit:time | script_error | engine_fault
// limits: guest_cpu_ms_max=1500
let o = {};
for (let i = 0; i < 20_000; i++) o = Object.create(o);
return o.missing === undefined;
