// case: STB-01
// expect: ok
// value: ["denied",{"n":1}]
// calls: box.echo=1 box.forbidden=0
const echo = box.echo;
for (const key of Reflect.ownKeys(box.forbidden)) {
  try {
    box.forbidden[key] = echo[key];
  } catch {}
}
try {
  box.forbidden.tool = "echo";
  box.forbidden.index = 0;
} catch {}
const code = await box.forbidden({}).catch((e) => e.code);
return [code, await echo.call({ name: "forbidden" }, { n: 1 })];
