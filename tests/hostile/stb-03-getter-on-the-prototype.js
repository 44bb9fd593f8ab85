// case: STB-03
// expect: ok
// value: ["tool-failed",true,true]
Object.prototype.get = () => "mine";
Object.prototype.value = "mine";
Object.prototype.writable = true;
Object.prototype.configurable = true;
try {
  await box.fail({});
  return "a success";
} catch (e) {
  return [e.code, e instanceof ToolError, Object.hasOwn(e, "code")];
}
