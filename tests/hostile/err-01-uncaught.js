// case: ERR-01
// expect: script_error
// name: ToolError
// code: tool-failed
// error: no such ticket: 42
// line: 8
// calls: box.fail=1
await box.fail({});
