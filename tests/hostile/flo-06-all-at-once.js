// case: FLO-06
// policies: shipped
// expect: ok
// value: 20
// calls: box.send=0
// why: no call of a crowd is decided on what was known before the crowd
const it = await box.echo({ to: "eve@evil.example" });
const told = await Promise.allSettled(Array.from({ length: 20 }, (_, i) => box.send({ to: i + it.to })));
return told.filter((t) => t.reason?.code === "unanswered").length;
