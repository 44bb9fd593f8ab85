// case: STK-01
// expect: limit:stack | script_error | engine_fault
const p = new Proxy({}, { get: (t, k, self) => self[k] });
return p.x;
