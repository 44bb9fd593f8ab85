// case: ARG-13
// expect: script_error
// name: TypeError
// error: echo
await box.ecko({});
