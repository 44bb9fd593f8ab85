// case: OUT-06
// expect: ok
// value: [1]
const seen = [];
const own = { log: (x) => seen.push(x) };
own.log(1);
return seen;
