// case: FLO-01
// policies: shipped
// expect: ok
// value: "unanswered"
// calls: box.send=0
// journal: flow-rule-of-two
// journal: "shares":[{"call":1,"field":"/body"
// why: what was read goes out as it is, even to somebody whom the script names
const it = await box.echo({ text: "the merger closes on Friday" });
return await box.send({ to: "boss@corp.example", body: it.text }).catch((e) => e.code);
