// case: STK-03
// expect: ok | limit:stack | limit:memory | limit:cpu | limit:time
// limits: guest_cpu_ms_max=1500
// value: "bottom"
let p = Promise.resolve("bottom");
for (let i = 0; i < 20_000; i++) {
  const inner = p;
  p = new Promise((resolve) => resolve(inner));
}
return await p;
