// case: GRA-08
// asks: box.write
// answers: refuse
// expect: denied
// code: refused
// questions: 1
// calls: box.write=0
// journal: "args_digest":"sha256:
// kept mib max: 32
await box.write({ text: "line\n".repeat(10_000), zz: "the end", to: "eve@evil.example" });
