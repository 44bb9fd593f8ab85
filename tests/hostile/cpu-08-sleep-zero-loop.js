// case: CPU-08
// expect: limit:time | limit:cpu
// limits: run_wall_ms_max=400
const sleep = (ms) => new Promise((wake) => setTimeout(wake, ms));
for (;;) await sleep(0);
