// case: GRA
// asks: box.write
// answers: nonsense | once
// expect: ok
// value: ["unanswered",true]
// calls: box.write=1
// journal: invalid answer
const told = [];
for (const n of [1, 2]) told.push(await box.write({ n }).then((it) => it.ok, (e) => e.code));
return told;
