// case: MEM-05
// expect: limit:memory | limit:payload | script_error
// limits: guest_memory_bytes_max=33554432 run_wall_ms_max=4000 guest_cpu_ms_max=3000
// calls: box.big=1
const ballast = new Uint8Array(20 * 1024 * 1024);
const { text } = await box.big({ bytes: 10 * 1024 * 1024 });
return [ballast.length, text.length];
