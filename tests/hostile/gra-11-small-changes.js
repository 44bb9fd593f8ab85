// case: GRA-11
// asks: box.pay
// answers: refuse | refuse | refuse
// limits: calls_max=100000
// expect: limit:calls
// calls: box.pay=0
// why: each further try is decided anew, and their number is bounded
for (let n = 0; n < 10_000; n++) await box.pay({ amount: n / 100 }).catch(() => {});
return "finished";
