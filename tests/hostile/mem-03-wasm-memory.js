// case: MEM-03
// expect: script_error
// name: ReferenceError
new WebAssembly.Memory({ initial: 1, maximum: 65536 });
