// case: RES-01
// expect: ok
// value: {"__proto__":{"admin":true},"constructor":1}
return JSON.parse('{"__proto__":{"admin":true},"constructor":1}');
