// case: OUT-01
// expect: ok
// value: "went on"
// limits: console_bytes_max=2000
// console bytes max: 2100
for (const name of Object.keys(console)) {
  for (let i = 0; i < 20; i++) console[name]?.("text ".repeat(20), { a: [1, 2, 3] });
}
return "went on";
