// case: ARG-08
// policies: shipped
// expect: denied
// code: unanswered
// calls: box.send=0
// journal: flow-lookalike
// journal: "lookalikes":["/to"]
// why: the script itself names it, with a letter of another alphabet
await box.send({ to: "bоss@corp.example", body: "hello" });
