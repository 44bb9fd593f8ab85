// case: CPU
// expect: limit:cpu | limit:time | ok
// limits: guest_cpu_ms_max=300
const hay = "a".repeat(300_000) + "b";
let found = 0;
for (let i = 0; i < 2000; i++) found += hay.indexOf("a".repeat(1000) + "c");
return found;
