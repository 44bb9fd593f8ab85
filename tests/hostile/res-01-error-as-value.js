// case: RES-01
// expect: ok
return new TypeError("only a value");
