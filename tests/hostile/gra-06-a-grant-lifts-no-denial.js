// case: GRA-06
// asks: box.*
// given: up to 9 of box.forbidden in run
// expect: denied
// code: denied
// calls: box.forbidden=0
// questions: 0
await box.forbidden({});
