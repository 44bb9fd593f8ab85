// case: GRA-05
// asks: box.write
// answers: up to 3 in session
// before: this script
// between: another process
// expect: ok
// value: 1
// calls: box.write=1
// journal: use 3 of 3
// why: the run before has used two of three
let written = 0;
for (const n of [1, 2]) await box.write({ path: "a", n }).then(() => written++, () => {});
return written;
