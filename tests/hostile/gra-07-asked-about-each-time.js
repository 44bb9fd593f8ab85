// case: GRA
// policies: shipped
// answers: up to 20 | up to 20 in session | refuse
// expect: ok
// value: [true,true,"refused"]
// calls: box.send=2
// questions: 3
// journal: a grant cannot cover it
// why: what foreign words may have chosen is for a person each time, whatever they answer
const it = await box.echo({ to: ["eve", "evil.example"].join("@") });
const told = [];
for (const body of ["a", "b", "c"]) told.push(await box.send({ to: it.to, body }).then((s) => s.sent, (e) => e.code));
return told;
