// case: OUT-08
// expect: limit:memory
// limits: guest_memory_bytes_max=33554432 console_bytes_max=200000
// console: line 900
for (let i = 0; i < 1000; i++) console.log(`line ${i} ${"-".repeat(80)}`);
const kept = [];
for (;;) kept.push("z".repeat(1 << 20) + kept.length);
