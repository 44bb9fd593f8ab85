// case: CPU
// expect: limit:cpu | limit:time
// limits: guest_cpu_ms_max=250
outer: for (;;) {
  for (const x of [1]) continue outer;
}
