// case: GRA-05
// asks: box.write
// answers: up to 9
// before: this script
// between: another process
// expect: denied
// code: unanswered
// calls: box.write=0
await box.write({ path: "a" });
