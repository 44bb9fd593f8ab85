// case: PRS-01
// expect: ok
// value: "refused"
try {
  Function("(".repeat(703))();
  return "ran";
} catch {
  return "refused";
}
