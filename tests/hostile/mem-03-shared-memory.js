// case: MEM-03
// check: warn
// expect: script_error
// name: ReferenceError
new SharedArrayBuffer(1024);
