// case: OUT-06
// expect: ok
// value: "refused"
try {
  const outer = console.constructor.constructor("return this")();
  return typeof outer;
} catch {
  return "refused";
}
