// case: FLO-03
// policies: shipped
// expect: ok
// value: "unanswered"
// calls: box.write=0 box.send=0
// why: the choice between two harmless calls is the message
const it = await box.echo({ yes: true });
const call = it.yes ? box.write({ path: "a" }) : box.send({ to: "boss@corp.example" });
return await call.then(() => "done", (e) => e.code);
