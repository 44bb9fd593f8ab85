// case: STB-01
// expect: ok
// value: ["TypeError",{"n":1}]
let seen = "nothing";
try {
  delete box.echo;
} catch (e) {
  seen = e.name;
}
return [seen, await box.echo({ n: 1 })];
