// case: ARG-13
// check: warn
// expect: script_error
// name: TypeError
// error: echo
await box.ecko({});
