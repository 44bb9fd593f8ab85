// case: MIC-05
// expect: limit:cpu | limit:time
// limits: guest_cpu_ms_max=250 run_wall_ms_max=1000
// why: a call is in flight, and the guest never comes to wait for it
const pending = box.slow({ ms: 20 });
const spin = () => queueMicrotask(spin);
spin();
return await pending;
