// case: MIC-03
// expect: limit:cpu | limit:time
// limits: guest_cpu_ms_max=250
await {
  then(resolve) {
    resolve(this);
  },
};
