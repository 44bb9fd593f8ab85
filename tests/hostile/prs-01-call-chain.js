// case: PRS-01
// expect: script_error | engine_fault | ok | limit:stack
// expand: yes
const f = () => f;
return typeof f{{"()" * 30000}};
