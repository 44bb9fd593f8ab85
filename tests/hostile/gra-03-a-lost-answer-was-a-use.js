// case: GRA-03
// asks: box.lost
// given: up to 2 of box.lost in run
// expect: ok
// value: ["outcome-unknown","outcome-unknown","unanswered"]
// calls: box.lost=2
const told = [];
for (let n = 0; n < 3; n++) told.push(await box.lost({ n }).catch((e) => e.code));
return told;
