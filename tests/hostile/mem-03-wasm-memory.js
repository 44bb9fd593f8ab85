// case: MEM-03
// check: warn
// expect: script_error
// name: ReferenceError
new WebAssembly.Memory({ initial: 1, maximum: 65536 });
