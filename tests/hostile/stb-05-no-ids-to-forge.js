// case: STB-05
// expect: ok
// value: []
// why: nothing a script can reach settles a call by number
const names = Object.getOwnPropertyNames(globalThis);
return names.filter((n) => /resume|settle|ticket|alloc|^start$|__|wizer|host|bridge/i.test(n) && !/^__(define|lookup)|^__proto__$/.test(n));
