// case: RES-05
// expect: script_error
throw Symbol("why");
