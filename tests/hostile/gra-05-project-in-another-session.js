// case: GRA-05
// asks: box.write
// answers: up to 9 in project
// before: this script
// between: another session
// expect: ok
// value: true
// questions: 1
// calls: box.write=1
// why: the other side of it: somebody said yes for the whole project
return (await box.write({ path: "a" })).ok;
