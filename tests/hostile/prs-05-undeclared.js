// case: PRS-05
// expect: script_error
// name: ReferenceError
undeclared = 1;
return undeclared;
