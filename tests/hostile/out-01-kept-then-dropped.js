// case: OUT-01
// expect: ok
// limits: console_bytes_max=1000 console_flood_bytes_max=4194304
// value: "went on"
// console: line 0
// console bytes max: 1100
for (let i = 0; i < 500; i++) console.log("line", i);
return "went on";
