// case: GRA-01
// asks: box.write
// given: up to 5 of box.write in project but under other rules
// expect: denied
// code: unanswered
// calls: box.write=0
// journal: the rules are others
await box.write({ path: "notes.md" });
