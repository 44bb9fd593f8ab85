// case: GRA-05
// asks: box.write
// answers: up to 9 in session
// before: this script
// between: another session
// expect: denied
// code: unanswered
// questions: 2
// calls: box.write=0
await box.write({ path: "a" });
