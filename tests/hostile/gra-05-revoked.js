// case: GRA-05
// asks: box.write
// answers: up to 9 in project
// before: this script
// between: revoked | another session
// expect: denied
// code: unanswered
// calls: box.write=0
// why: a project's grant would hold in any session, and somebody took it back
await box.write({ path: "a" });
