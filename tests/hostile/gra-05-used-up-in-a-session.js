// case: GRA-05
// asks: box.write
// given: up to 5 of box.write in session but used up
// expect: denied
// code: unanswered
// calls: box.write=0
// why: there was a grant, and its number is over
await box.write({ path: "a" });
