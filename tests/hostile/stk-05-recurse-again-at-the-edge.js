// case: STK-05
// expect: limit:stack | limit:cpu | limit:time | limit:memory | engine_fault
// limits: guest_cpu_ms_max=400
let times = 0;
function f() {
  try {
    f();
  } catch {
    times++;
    f();
  }
}
f();
return times;
