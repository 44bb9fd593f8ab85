// case: CPU-01
// expect: limit:cpu | limit:time
// limits: guest_cpu_ms_max=250 run_wall_ms_max=2000 calls_max=100000
// why: each step computes a little; only their sum is too much
for (;;) {
  await box.echo({});
  for (let i = 0; i < 20000; i++);
}
