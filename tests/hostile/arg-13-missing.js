// case: ARG-13
// check: warn
// expect: ok
// value: ["invalid-arguments",true]
// calls: box.send=0
try {
  await box.send({ subject: "hi" });
} catch (e) {
  return [e.code, /\bto\b/.test(e.message)];
}
