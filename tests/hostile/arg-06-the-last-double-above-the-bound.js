// case: ARG-06
// check: warn
// expect: ok
// value: "invalid-arguments"
// calls: box.pay=0
try {
  await box.pay({ amount: 250.00000000000003 });
  return "paid";
} catch (e) {
  return e.code;
}
