// case: MEM-03
// expect: script_error
// name: RangeError
"x".repeat(2 ** 30);
