// case: GRA
// asks: box.write
// answers: up to 9 about {"path":"b"}
// expect: denied
// code: unanswered
// calls: box.write=0
// journal: the answer does not cover the arguments in the question
// why: an answer that is not about the call is none
await box.write({ path: "a" });
