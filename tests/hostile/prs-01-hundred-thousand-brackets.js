// case: PRS-01
// expect: script_error | engine_fault
// expand: yes
return {{"[" * 100000}}{{"]" * 100000}};
