// case: FLO-05
// expect: ok
// value: "refused"
try {
  return (0, globalThis.eval)("1 + 1");
} catch {
  return "refused";
}
