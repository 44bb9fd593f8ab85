// case: GRA-08
// asks: box.write
// answers: up to 9 | once
// expect: ok
// value: [true,true,"unanswered"]
// questions: 3
// calls: box.write=2
// why: arguments in too many pieces are approved one call at a time
const args = Object.fromEntries(Array.from({ length: 300 }, (_, n) => ["field" + n, n]));
const told = [];
for (const _ of [1, 2, 3]) told.push(await box.write(args).then((it) => it.ok, (e) => e.code));
return told;
