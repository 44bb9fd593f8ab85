// case: GRA-06
// asks: box.write
// given: up to 9 of box.write in run but for another description
// expect: denied
// code: unanswered
// calls: box.write=0
// journal: the description of the grant's tool has changed
await box.write({ path: "a" });
