// case: ASY-06
// expect: limit:cpu | limit:time
// limits: guest_cpu_ms_max=250
const it = {
  [Symbol.iterator]() {
    return {
      next: () => ({ value: 1, done: false }),
      return() {
        for (;;);
      },
    };
  },
};
for (const x of it) break;
return 1;
