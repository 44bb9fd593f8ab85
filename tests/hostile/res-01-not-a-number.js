// case: RES-01
// expect: ok
// value: [null,null,null]
return [NaN, Infinity, -Infinity];
