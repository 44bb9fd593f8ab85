// case: STK-01
// expect: limit:stack | ok
// value: "RangeError"
// why: either the script sees a RangeError, or the run is stopped; it never goes on without a word
function f() {
  return f() + 1;
}
try {
  return f();
} catch (e) {
  return e.name;
}
