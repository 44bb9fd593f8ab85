// case: GRA-05
// asks: box.write
// answers: up to 9
// before: this script
// expect: denied
// code: unanswered
// questions: 2
// calls: box.write=0
// why: the same script, the same broker, the same session, and the run it was given for is over
await box.write({ path: "a" });
