// case: PRS-01
// expect: script_error | engine_fault | ok | limit:stack
// expand: yes
return ({{"0," * 50000}}1);
