// case: ERR-06
// expect: ok
// value: "refused"
try {
  await box.fail({});
} catch (error) {
  try {
    return error.constructor.constructor("return process")();
  } catch {
    return "refused";
  }
}
