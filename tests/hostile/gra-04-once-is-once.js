// case: GRA
// asks: box.write
// answers: once | refuse
// expect: ok
// value: [true,"refused"]
// calls: box.write=1
// questions: 2
// why: the very same call again is another one
const told = [];
for (const _ of [1, 2]) told.push(await box.write({ path: "a" }).then((it) => it.ok, (e) => e.code));
return told;
