// case: STK-01
// expect: limit:stack | script_error | engine_fault
const f = () => [1].map(f);
return f();
