// case: MEM-03
// expect: script_error
// name: RangeError
new Float64Array(2 ** 32);
