// case: MEM-03
// expect: script_error | limit:memory | engine_fault
"x".padEnd(2 ** 31, "yz");
