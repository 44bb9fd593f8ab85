// case: RES-01
// expect: script_error
const a = { name: "a" };
a.self = a;
return a;
