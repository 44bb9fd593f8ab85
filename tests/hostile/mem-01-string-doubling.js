// case: MEM-01
// expect: limit:memory | script_error | engine_fault
// limits: guest_memory_bytes_max=33554432
let s = "0123456789abcdef";
for (;;) s += s;
