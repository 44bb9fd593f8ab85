// case: ERR-05
// expect: ok
// value: ["denied","box.forbidden",true]
// calls: box.forbidden=0
try {
  await box.forbidden({});
} catch (e) {
  return [e.code, e.tool, e instanceof ToolError];
}
