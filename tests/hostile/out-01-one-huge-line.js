// case: OUT-01
// expect: ok
// console: yyyyyyyyyyyyyyyyyyyyyyyyyyyyyy
// limits: console_bytes_max=65536 console_flood_bytes_max=4194304
// console bytes max: 65700
console.log("y".repeat(3_000_000));
return 1;
