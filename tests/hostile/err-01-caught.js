// case: ERR-01
// expect: ok
// value: {"code":"tool-failed","tool":"box.fail","text":"no such ticket: 42","hint":"list them first","own":true,"error":true}
// calls: box.fail=1
try {
  await box.fail({});
} catch (e) {
  return {
    code: e.code,
    tool: e.tool,
    text: e.content[0].text,
    hint: e.structuredContent.hint,
    own: e instanceof ToolError,
    error: e instanceof Error,
  };
}
