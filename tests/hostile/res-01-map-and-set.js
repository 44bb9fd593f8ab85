// case: RES-01
// expect: ok
return { map: new Map([["a", 1]]), set: new Set([1, 2]) };
