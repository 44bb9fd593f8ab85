// case: GRA-11
// expect: limit:calls
// limits: calls_max=100000
// calls: box.forbidden=0
for (let i = 0; i < 10_000; i++) {
  await box.forbidden({ i }).catch(() => {});
}
return "finished";
