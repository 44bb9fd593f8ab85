// case: STB-01
// expect: ok
// value: ["TypeError",{"n":1}]
// calls: box.echo=1
let seen = "nothing";
try {
  box.echo = () => "mine";
} catch (e) {
  seen = e.name;
}
return [seen, await box.echo({ n: 1 })];
