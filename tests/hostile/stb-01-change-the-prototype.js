// case: STB-01
// expect: ok
// value: {"n":1}
try {
  Object.setPrototypeOf(box, { echo: () => "mine" });
} catch {}
return await box.echo({ n: 1 });
