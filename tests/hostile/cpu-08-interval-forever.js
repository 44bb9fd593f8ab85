// case: CPU-08
// expect: limit:time | limit:cpu
// limits: run_wall_ms_max=400
let ticks = 0;
setInterval(() => ticks++, 1);
await new Promise((done) => setInterval(() => ticks < 0 && done(), 1));
