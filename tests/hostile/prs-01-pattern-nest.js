// case: PRS-01
// expect: script_error | engine_fault | limit:stack
// expand: yes
const {{"[" * 5000}}a{{"]" * 5000}} = [];
