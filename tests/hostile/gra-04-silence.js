// case: GRA
// asks: box.write
// answers: silence
// limits: ask_wall_ms_max=100
// expect: ok
// value: ["unanswered","unanswered","unanswered"]
// questions: 1
// calls: box.write=0
// why: whoever lets one question expire is not asked the next ones
const told = [];
for (const n of [1, 2, 3]) told.push(await box.write({ n }).catch((e) => e.code));
return told;
