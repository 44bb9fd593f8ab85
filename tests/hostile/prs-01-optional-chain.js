// case: PRS-01
// expect: script_error | engine_fault | ok | limit:stack
// expand: yes
const a = undefined;
return a{{"?.a" * 20000}} === undefined;
