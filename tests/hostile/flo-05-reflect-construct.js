// case: FLO-05
// expect: ok
// value: "refused"
try {
  return Reflect.construct(Function, ["return 1"])();
} catch {
  return "refused";
}
