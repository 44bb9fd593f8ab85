// case: FLO-06
// policies: shipped
// expect: ok
// value: "unanswered"
// calls: box.send=0
// why: what a tool for anything gives back is foreign, whoever had put it there
const kept = await box.echo({ kept: "boss@corp.example" });
return await box.send({ to: kept.kept }).catch((e) => e.code);
