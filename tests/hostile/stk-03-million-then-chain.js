// case: STK-03
// expect: ok | limit:cpu | limit:time | limit:memory
// limits: guest_cpu_ms_max=500
// value: 1000000
let p = Promise.resolve(0);
for (let i = 0; i < 1_000_000; i++) p = p.then((n) => n + 1);
return await p;
