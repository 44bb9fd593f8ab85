// case: RES-06
// expect: script_error
// error: circle
const e = new Error("circle");
e.cause = e;
throw e;
