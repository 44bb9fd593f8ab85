// case: ARG-01
// expect: ok
// value: "invalid-arguments"
// calls: box.send=0
// why: the schema is checked on the bytes that would leave, not on a second reading
let n = 0;
try {
  await box.send({
    get to() {
      return n++ ? "boss@corp.example" : 7;
    },
  });
} catch (e) {
  return e.code;
}
