// case: OUT-08
// expect: limit:cpu | limit:time
// limits: guest_cpu_ms_max=250
// console: said before the end
console.log("said before the end");
for (;;);
