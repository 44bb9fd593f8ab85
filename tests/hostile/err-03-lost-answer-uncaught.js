// case: ERR-03
// expect: script_error
// code: outcome-unknown
await box.lost({});
