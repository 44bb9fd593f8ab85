// case: OUT-06
// expect: ok
// value: "refused"
try {
  return console.log.constructor("return globalThis")();
} catch {
  return "refused";
}
