// case: PRS-05
// expect: script_error
// name: SyntaxError
let a = 1;
delete a;
