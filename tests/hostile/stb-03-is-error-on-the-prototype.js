// case: STB-03
// expect: ok
// value: ["tool-failed","box.fail"]
// calls: box.fail=1
Object.prototype.isError = false;
Object.prototype.code = "returned";
Object.prototype.ok = true;
try {
  await box.fail({});
  return "a success";
} catch (e) {
  return [e.code, e.tool];
}
