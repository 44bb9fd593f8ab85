// case: MEM-03
// expect: limit:memory
// expect on quickjs: script_error
let text = "";
const piece = "x".repeat(100_000);
for (;;) text += piece;
