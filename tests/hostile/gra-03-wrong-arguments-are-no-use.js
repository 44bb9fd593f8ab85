// case: GRA-03
// asks: box.pay
// given: up to 2 of box.pay in run
// expect: ok
// value: ["invalid-arguments","invalid-arguments",10,20,"unanswered"]
// calls: box.pay=2
// why: what is refused before anybody is asked costs nothing, and allows nothing
const told = [];
for (const amount of [300, -1, 10, 20, 30]) told.push(await box.pay({ amount }).then((it) => it.paid, (e) => e.code));
return told;
