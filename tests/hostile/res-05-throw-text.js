// case: RES-05
// expect: script_error
// error: only text
throw "only text";
