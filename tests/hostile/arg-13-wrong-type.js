// case: ARG-13
// check: warn
// expect: ok
// value: ["invalid-arguments",true]
// calls: box.pay=0
try {
  await box.pay({ amount: "250" });
} catch (e) {
  return [e.code, e.message.includes("amount")];
}
