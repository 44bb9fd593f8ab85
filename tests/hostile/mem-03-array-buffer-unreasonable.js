// case: MEM-03
// expect: script_error
// name: RangeError
new ArrayBuffer(2 ** 53 - 1);
