// case: RES-01
// expect: script_error | ok
return Symbol("s");
