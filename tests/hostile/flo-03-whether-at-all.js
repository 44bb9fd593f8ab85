// case: FLO-03
// policies: shipped
// expect: ok
// value: ["unanswered","unanswered"]
// calls: box.send=0
// why: that a call is made at all says what was read
const it = await box.echo({ yes: true });
const told = await Promise.allSettled(it.yes ? [box.send({ to: "a@corp.example" }), box.send({ to: "b@corp.example" })] : []);
return told.map((t) => t.reason?.code);
