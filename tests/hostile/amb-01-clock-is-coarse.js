// case: AMB-01
// expect: ok
// value: [true,true,true]
// why: whole milliseconds, and no time passes while a script computes
const a = [Date.now(), performance.now()];
for (let i = 0; i < 1000; i++);
const b = [Date.now(), performance.now()];
return [Number.isInteger(a[0]), a[0] === b[0], a[1] === b[1]];
