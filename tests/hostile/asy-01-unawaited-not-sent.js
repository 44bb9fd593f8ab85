// case: ASY-01
// expect: ok
// value: 1
// why: what is made in the same step as the end never leaves
// calls: box.write=0
// outcomes: not-sent
box.write({ late: true });
return 1;
