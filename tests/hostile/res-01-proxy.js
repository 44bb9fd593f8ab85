// case: RES-01
// expect: ok
// value: {"a":1}
return new Proxy({ a: 1 }, {});
