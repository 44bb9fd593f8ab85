// case: FLO-03
// policies: shipped
// expect: ok
// value: "unanswered"
// calls: box.send=0
// why: the time until a call is made depends on what was read
const it = await box.echo({ n: 20 });
await new Promise((wake) => setTimeout(wake, it.n));
return await box.send({ to: "boss@corp.example" }).catch((e) => e.code);
