// case: ERR-06
// expect: ok
// value: ["ToolError","Error","Object"]
try {
  await box.fail({});
} catch (error) {
  const names = [];
  for (let p = Object.getPrototypeOf(error); p; p = Object.getPrototypeOf(p)) names.push(p.constructor.name);
  return names;
}
