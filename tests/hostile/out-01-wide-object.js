// case: OUT-01
// expect: ok | limit:output | limit:cpu | limit:time | limit:memory
// limits: console_bytes_max=4096 guest_cpu_ms_max=1000
// console bytes max: 4096
// why: a small value whose printed form would be exponential
let o = { leaf: "0123456789" };
for (let i = 0; i < 40; i++) o = { a: o, b: o };
console.log(o);
return 1;
