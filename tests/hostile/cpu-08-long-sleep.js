// case: CPU-08
// expect: limit:time
// limits: run_wall_ms_max=400
// why: a sleep longer than the run ends it at its deadline on the run's clock, not at the end of the sleep
await new Promise((wake) => setTimeout(wake, 3_600_000));
return "slept";
