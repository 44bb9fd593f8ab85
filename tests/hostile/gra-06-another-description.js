// case: GRA-06
// asks: box.write
// answers: up to 9 in session
// before: this script
// between: another description
// expect: denied
// code: unanswered
// calls: box.write=0
// journal: the description of the grant's tool has changed
await box.write({ path: "a" });
