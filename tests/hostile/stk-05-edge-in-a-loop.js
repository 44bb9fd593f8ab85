// case: STK-05
// expect: limit:stack | limit:cpu | limit:time | limit:memory
// limits: guest_cpu_ms_max=400
function f() {
  f();
}
for (let i = 0; i < 100_000; i++) {
  try {
    f();
  } catch {}
}
