// case: FLO-05
// expect: ok
// value: "refused"
try {
  return eval("1 + 1");
} catch {
  return "refused";
}
