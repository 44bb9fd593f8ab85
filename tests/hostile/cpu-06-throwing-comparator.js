// case: CPU-06
// expect: script_error
// name: RangeError
// error: no order
[3, 1, 2].sort(() => {
  throw new RangeError("no order");
});
