// case: RES-06
// expect: script_error | limit:output | limit:payload
// error bytes max: 70000
const e = new Error("x");
e.name = "N".repeat(1_000_000);
e.stack = "S".repeat(1_000_000);
throw e;
