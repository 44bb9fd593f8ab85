// case: OUT-01
// expect: limit:output
// limits: console_bytes_max=4096 console_flood_bytes_max=65536 guest_cpu_ms_max=2500 run_wall_ms_max=3000
// console bytes max: 4200
for (;;) console.log("");
