// case: PRS-01
// expect: ok
// expand: yes
// value: 50
let n = 0;
for (let a = {{"[" * 50}}0{{"]" * 50}}; Array.isArray(a); a = a[0]) n++;
return n;
