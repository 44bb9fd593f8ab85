// case: RES-01
// expect: ok
// value: null
return undefined;
