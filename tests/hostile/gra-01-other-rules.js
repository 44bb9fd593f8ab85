// case: GRA-01
// asks: box.write
// answers: up to 9 in session
// before: this script
// between: other rules
// expect: denied
// code: unanswered
// calls: box.write=0
// journal: the rules changed after the grant was given
// why: a rule about another tool altogether was added
await box.write({ path: "notes.md" });
