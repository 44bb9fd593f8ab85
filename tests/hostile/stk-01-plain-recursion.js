// case: STK-01
// expect: limit:stack | script_error
// limits: run_wall_ms_max=1500
function f() {
  f();
}
f();
