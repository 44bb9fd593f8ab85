// case: PRS-01
// expect: script_error | engine_fault | ok | limit:stack
// expand: yes
let a;
{{"a=" * 20000}}1;
return a;
