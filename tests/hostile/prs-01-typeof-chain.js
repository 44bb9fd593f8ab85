// case: PRS-01
// expect: script_error | engine_fault | ok | limit:stack
// expand: yes
return {{"typeof " * 20000}}1;
