// case: ASY-06
// expect: limit:time
// limits: run_wall_ms_max=300
// calls: box.slow=1 box.write=0
try {
  await box.slow({ ms: 60000 });
} catch {
  await box.write({ from: "catch" });
} finally {
  await box.write({ from: "finally" });
}
