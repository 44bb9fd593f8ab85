// case: GRA-11
// expect: limit:calls
// limits: calls_max=100000
// calls: box.pay=0
// why: trying one wrong argument after the other ends the run
for (let i = 0; i < 10_000; i++) {
  try {
    await box.pay({ amount: 300 + i });
  } catch {}
}
return "finished";
