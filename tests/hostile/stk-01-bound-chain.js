// case: STK-01
// expect: limit:stack | script_error | engine_fault | limit:memory | ok
let f = () => 1;
for (let i = 0; i < 20000; i++) f = f.bind(null);
return f();
