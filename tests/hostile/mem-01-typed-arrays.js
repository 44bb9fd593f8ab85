// case: MEM-01
// expect: limit:memory | script_error
// limits: guest_memory_bytes_max=33554432
const kept = [];
for (;;) kept.push(new Uint8Array(1 << 20));
