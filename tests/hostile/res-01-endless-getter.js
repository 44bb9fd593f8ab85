// case: RES-01
// expect: limit:cpu | limit:time
// limits: guest_cpu_ms_max=250
return {
  get member() {
    for (;;);
  },
};
