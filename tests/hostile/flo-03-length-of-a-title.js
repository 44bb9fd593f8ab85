// case: FLO-03
// policies: shipped
// expect: ok
// value: "unanswered"
// calls: box.send=0
const it = await box.echo({ text: "secret" });
return await box.send({ to: "boss@corp.example", subject: "x".repeat(it.text.length) }).catch((e) => e.code);
