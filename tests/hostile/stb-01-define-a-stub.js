// case: STB-01
// expect: ok
// value: ["TypeError",{"n":1}]
let seen = "nothing";
try {
  Object.defineProperty(box, "echo", { value: () => "mine" });
} catch (e) {
  seen = e.name;
}
return [seen, await box.echo({ n: 1 })];
