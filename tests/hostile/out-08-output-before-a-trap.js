// case: OUT-08
// expect: engine_fault | limit:memory | limit:stack | script_error
// console: said before the trap
console.log("said before the trap");
await null;
"x".repeat(2 ** 30);
