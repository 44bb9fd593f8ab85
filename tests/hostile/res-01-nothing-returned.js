// case: RES-01
// expect: ok
// value: null
const unused = 1;
