// case: CPU-08
// expect: limit:time | limit:cpu
// limits: run_wall_ms_max=400
// calls: box.echo=1
// why: once the run has touched the outside, sleeping is waiting
await box.echo({});
const sleep = (ms) => new Promise((wake) => setTimeout(wake, ms));
for (;;) await sleep(0);
