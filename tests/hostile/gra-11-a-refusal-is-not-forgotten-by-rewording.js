// case: GRA-11
// asks: box.write
// answers: refuse | refuse | once
// expect: ok
// value: ["refused","refused",true]
// questions: 3
// question: so far 0
// calls: box.write=1
const told = [];
for (const path of ["a", "./a", "a/."]) told.push(await box.write({ path }).then((it) => it.ok, (e) => e.code));
return told;
