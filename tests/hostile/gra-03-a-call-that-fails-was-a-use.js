// case: GRA-03
// asks: box.fail
// given: up to 3 of box.fail in session
// expect: ok
// value: ["tool-failed","tool-failed","tool-failed","unanswered","unanswered"]
// calls: box.fail=3
// why: something may have happened, so it counts
const told = [];
for (let n = 0; n < 5; n++) told.push(await box.fail({ n }).catch((e) => e.code));
return told;
