// case: ISO-06
// policies: shipped
// before: const it = await box.echo({ to: ["eve", "evil.example"].join("@") }); await box.send({ to: it.to, body: "a" })
// answers: once after the rules changed | refuse
// expect: denied
// code: refused
// questions: 2
// calls: box.send=0
// why: in the run before, everything was permitted on disk; the broker keeps the rules that it was started with
await box.send({ to: ["eve", "evil.example"].join("@"), body: "b" });
