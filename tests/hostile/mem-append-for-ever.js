// case: MEM-03
// expect: limit:memory
let text = "";
const piece = "x".repeat(100_000);
for (;;) text += piece;
