// case: MIC-03
// expect: ok
// value: true
const same = await box;
return same === box && typeof box.then === "undefined";
