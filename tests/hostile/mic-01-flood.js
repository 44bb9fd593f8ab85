// case: MIC-01
// expect: limit:cpu | limit:time | limit:memory
// limits: guest_cpu_ms_max=300
// why: each job queues two
const burst = () => {
  queueMicrotask(burst);
  queueMicrotask(burst);
};
burst();
await new Promise(() => {});
