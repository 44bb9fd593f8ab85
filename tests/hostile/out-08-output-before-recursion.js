// case: OUT-08
// expect: limit:stack | script_error
// console: said before the fall
console.log("said before the fall");
const f = () => f();
f();
