// case: PRS-01
// expect: script_error | engine_fault | limit:stack
// expand: yes
return {{"new " * 20000}}Object;
