// case: STK-01
// expect: limit:stack | limit:memory | script_error | engine_fault | ok
const many = new Array(400_000).fill(1);
return Math.max(...many);
