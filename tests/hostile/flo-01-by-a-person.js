// case: FLO-01
// policies: shipped
// answers: once
// expect: ok
// value: true
// calls: box.send=1
// questions: 1
// question: the merger closes on Friday
// question: flow-rule-of-two
// journal: "shares":[{"call":1,"field":"/body"
// why: a person may let it go, and was shown what goes, and that it repeats what was read
const it = await box.echo({ text: "the merger closes on Friday" });
return (await box.send({ to: "boss@corp.example", body: it.text })).sent;
