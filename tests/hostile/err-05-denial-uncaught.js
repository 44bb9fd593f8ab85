// case: ERR-05
// expect: denied
// code: denied
// calls: box.forbidden=0
await box.forbidden({});
