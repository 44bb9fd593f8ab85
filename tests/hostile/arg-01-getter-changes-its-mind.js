// case: ARG-01
// expect: ok
// value: {"to":"boss@corp.example"}
// calls: box.echo=1
let n = 0;
return await box.echo({
  get to() {
    return n++ ? "evil@example.net" : "boss@corp.example";
  },
});
