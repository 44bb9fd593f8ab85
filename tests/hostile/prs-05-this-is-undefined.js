// case: PRS-05
// expect: ok
// value: true
return (function () {
  return this === undefined;
})();
