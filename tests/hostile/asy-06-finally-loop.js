// case: ASY-06
// expect: limit:cpu | limit:time
// limits: guest_cpu_ms_max=250
try {
  for (;;);
} finally {
  for (;;);
}
