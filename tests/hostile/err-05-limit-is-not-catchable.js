// case: ERR-05
// expect: limit:cpu | limit:time
// limits: guest_cpu_ms_max=250
// calls: box.write=0
try {
  for (;;);
} catch {
  await box.write({ from: "catch" });
} finally {
  await box.write({ from: "finally" });
}
