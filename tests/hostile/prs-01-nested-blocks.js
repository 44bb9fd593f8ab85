// case: PRS-01
// expect: script_error | engine_fault | ok | limit:stack
// expand: yes
{{"{" * 20000}}{{"}" * 20000}}
return 1;
