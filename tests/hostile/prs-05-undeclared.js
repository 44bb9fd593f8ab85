// case: PRS-05
// check: warn
// expect: script_error
// name: ReferenceError
undeclared = 1;
return undeclared;
