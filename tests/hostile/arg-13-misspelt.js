// case: ARG-13
// check: warn
// expect: ok
// value: ["invalid-arguments",true,true]
// calls: box.send=0
try {
  await box.send({ to: "a@corp.example", subjekt: "hi" });
} catch (e) {
  return [e.code, e.message.includes("subjekt"), e.message.includes("subject")];
}
