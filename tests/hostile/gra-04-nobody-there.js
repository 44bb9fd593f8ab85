// case: GRA
// asks: box.write
// answers: nobody
// expect: denied
// code: unanswered
// calls: box.write=0
await box.write({ path: "a" });
