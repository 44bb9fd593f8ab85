// case: STB-03
// expect: ok
// value: ["tool-failed",false]
class ToolErrorOfMine extends Error {}
try {
  globalThis.ToolError = ToolErrorOfMine;
} catch {}
try {
  await box.fail({});
} catch (e) {
  return [e.code, e instanceof ToolErrorOfMine];
}
