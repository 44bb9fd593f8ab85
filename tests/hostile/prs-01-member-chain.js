// case: PRS-01
// expect: script_error | engine_fault | ok | limit:stack
// expand: yes
const a = {};
a.a = a;
return a{{".a" * 50000}} === a;
