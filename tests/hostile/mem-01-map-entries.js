// case: MEM-01
// expect: limit:memory | limit:cpu | limit:time
// limits: guest_memory_bytes_max=33554432 run_wall_ms_max=6000 guest_cpu_ms_max=5000
const map = new Map();
for (let i = 0; ; i++) map.set(`key ${i}`, { i });
