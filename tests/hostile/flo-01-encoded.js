// case: FLO-01
// policies: shipped
// expect: ok
// value: "unanswered"
// calls: box.send=0
// why: no detector knows this disguise, and none is needed
const it = await box.echo({ text: "the merger closes on Friday" });
const body = [...it.text].map((c) => c.codePointAt(0) * 7 + 3).join(" ");
return await box.send({ to: "boss@corp.example", body }).catch((e) => e.code);
