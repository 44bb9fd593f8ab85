// case: ASY-06
// expect: limit:cpu | limit:time
// limits: guest_cpu_ms_max=250
function* stubborn() {
  for (;;) {
    try {
      yield 1;
    } finally {
      continue;
    }
  }
}
for (const x of stubborn()) break;
for (;;);
