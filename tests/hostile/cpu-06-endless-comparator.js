// case: CPU-06
// expect: limit:cpu | limit:time
// limits: guest_cpu_ms_max=250
[2, 1].sort(() => {
  for (;;);
});
