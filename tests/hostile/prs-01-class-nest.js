// case: PRS-01
// expect: script_error | engine_fault | limit:stack
// expand: yes
return {{"class{static a=" * 5000}}1{{"}" * 5000}};
