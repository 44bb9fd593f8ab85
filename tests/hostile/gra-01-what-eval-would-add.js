// case: GRA-01
// asks: box.write
// given: up to 5 of box.write in run where {"path":"notes.md"}
// expect: ok
// value: ["refused",true]
// calls: box.write=1
// args: {"path":"notes.md"}
// why: the script that was approved cannot become another one while it runs
let told = "compiled";
try {
  new Function("box", "return box.write({ path: 'x' })")(box);
} catch {
  told = "refused";
}
return [told, (await box.write({ path: "notes.md" })).ok];
