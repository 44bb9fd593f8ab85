// case: PRS-06
// check: warn
// expect: script_error
// name: ReferenceError
return require("fs");
