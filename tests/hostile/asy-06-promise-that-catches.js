// case: ASY-06
// expect: limit:cpu | limit:time
// limits: guest_cpu_ms_max=250
// calls: box.write=0
await (async () => {
  for (;;);
})().catch(() => box.write({ from: "catch" }));
