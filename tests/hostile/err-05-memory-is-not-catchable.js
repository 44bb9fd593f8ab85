// case: ERR-05
// expect: limit:memory
// limits: guest_memory_bytes_max=33554432 run_wall_ms_max=6000 guest_cpu_ms_max=5000
// calls: box.write=0
try {
  const kept = [];
  for (;;) kept.push(new Array(1e5).fill(1));
} catch {
  await box.write({ from: "catch" });
} finally {
  await box.write({ from: "finally" });
}
