// case: ARG-13
// check: warn
// expect: script_error
// code: invalid-arguments
// calls: box.pay=0
await box.pay({ amount: -1 });
