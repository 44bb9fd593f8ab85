// case: ASY-06
// expect: limit:time
// limits: run_wall_ms_max=300
// calls: box.slow=1 box.write=0
// why: the call lasts longer than the deadline, also when 64 runs share it and have 16 times longer
try {
  await box.slow({ ms: 8000 });
} catch {
  await box.write({ from: "catch" });
} finally {
  await box.write({ from: "finally" });
}
