// case: ISO-06
// policies: shipped
// answers: once after the rules changed | refuse
// expect: ok
// value: [true,"refused"]
// questions: 2
// calls: box.send=1
// why: while the first question was open everything was permitted on disk; the run keeps what it began with
const it = await box.echo({ to: ["eve", "evil.example"].join("@") });
const told = [];
for (const body of ["a", "b"]) told.push(await box.send({ to: it.to, body }).then((s) => s.sent, (e) => e.code));
return told;
