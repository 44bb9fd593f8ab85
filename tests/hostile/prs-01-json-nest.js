// case: PRS-01
// expect: ok | engine_fault | limit:stack
// value: "refused"
try {
  JSON.parse("[".repeat(100_000) + "]".repeat(100_000));
  return "parsed";
} catch (e) {
  return "refused";
}
