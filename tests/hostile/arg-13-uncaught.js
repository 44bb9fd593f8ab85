// case: ARG-13
// expect: script_error
// code: invalid-arguments
// calls: box.pay=0
await box.pay({ amount: -1 });
