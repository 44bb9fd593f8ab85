// case: PRS-05
// expect: script_error
// name: TypeError
return (function () {
  return arguments.callee;
})();
