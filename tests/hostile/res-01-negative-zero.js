// case: RES-01
// expect: ok
// value: 0
return -0;
