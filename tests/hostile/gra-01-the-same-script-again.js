// case: GRA-01
// asks: box.write
// answers: up to 9 in session
// before: this script
// between: another process
// expect: ok
// value: true
// questions: 1
// calls: box.write=1
// journal: "number":2
// why: the other side of it: where nothing has changed nobody is asked twice
return (await box.write({ path: "notes.md" })).ok;
