// case: GRA-01
// asks: box.write
// given: up to 5 of box.write in run but for another script
// expect: denied
// code: unanswered
// calls: box.write=0
// journal: the grant was given for another script
await box.write({ path: "notes.md" });
