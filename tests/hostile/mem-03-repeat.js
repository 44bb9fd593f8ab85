// case: MEM-03
// expect: script_error | limit:memory | engine_fault
"x".repeat(2 ** 30);
