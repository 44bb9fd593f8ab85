// case: GRA-01
// asks: box.write
// answers: up to 9 in session
// before: this script
// between: one more space
// expect: denied
// code: unanswered
// questions: 2
// calls: box.write=0
// journal: the grant was given for another script
// why: a yes is to a script byte by byte, so the person is asked again
await box.write({ path: "notes.md" });
return 1;
