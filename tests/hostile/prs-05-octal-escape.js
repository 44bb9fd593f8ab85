// case: PRS-05
// expect: script_error
// name: SyntaxError
return "\101";
