// case: PRS-01
// expect: script_error | engine_fault | limit:stack
// expand: yes
return {{"`${" * 20000}}1{{"}`" * 20000}};
