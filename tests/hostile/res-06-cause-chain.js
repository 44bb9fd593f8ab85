// case: RES-06
// expect: script_error | limit:cpu | limit:time | limit:memory
// limits: guest_cpu_ms_max=1500
let e = new Error("root");
for (let i = 0; i < 100_000; i++) e = new Error("level", { cause: e });
throw e;
