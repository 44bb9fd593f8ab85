// case: AMB-08
// check: warn
// expect: script_error
// name: ReferenceError
await WebAssembly.instantiate(new Uint8Array([0, 97, 115, 109, 1, 0, 0, 0]));
