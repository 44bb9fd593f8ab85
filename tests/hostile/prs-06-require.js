// case: PRS-06
// expect: script_error
// name: ReferenceError
return require("fs");
