// case: OUT-05
// expect: ok
// console: visible
console.log("visible\u200b\u202etxt.exe\u2066hidden\u2069\u{e0049}\u{e0067}\u{e006e}");
return "p\u0430ypal";
