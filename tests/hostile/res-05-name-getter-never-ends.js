// case: RES-05
// expect: script_error | limit:cpu | limit:time
// limits: guest_cpu_ms_max=250
const e = new Error("plain");
Object.defineProperty(e, "name", {
  get() {
    for (;;);
  },
});
throw e;
