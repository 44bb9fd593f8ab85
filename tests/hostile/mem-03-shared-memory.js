// case: MEM-03
// expect: script_error
// name: ReferenceError
new SharedArrayBuffer(1024);
