// case: AMB-01
// expect: ok
// value: [0,true]
const d = new Date(2024, 6, 1, 12);
return [d.getTimezoneOffset(), d.toString().includes("GMT+0000")];
