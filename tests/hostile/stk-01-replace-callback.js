// case: STK-01
// expect: limit:stack | script_error | engine_fault
const f = () => "a".replace(/a/, f);
return f();
