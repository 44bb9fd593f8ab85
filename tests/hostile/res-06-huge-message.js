// case: RES-06
// expect: script_error | limit:output | limit:payload | limit:memory
// why: what the model gets of it is bounded
// error bytes max: 70000
throw new Error("m".repeat(5_000_000));
