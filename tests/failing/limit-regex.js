// run with --limit cpu=300ms
const line = 'a'.repeat(40) + '!';
const safe = /^\w+!$/.test(line);
const found = /^(a+)+$/.test(line);
return [safe, found];
