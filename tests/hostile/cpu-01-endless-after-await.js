// case: CPU-01
// expect: limit:cpu | limit:time
// limits: guest_cpu_ms_max=250
// calls: box.echo=1
// why: the budget runs over all steps of the guest, not from one call to the next
await box.echo({ n: 1 });
let n = 0;
while (true) n = (n + 1) % 7;
