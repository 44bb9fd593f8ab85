// case: FLO-06
// policies: shipped
// before: return await box.echo({ text: "words" })
// between: another session
// expect: ok
// value: true
// labels: none
// calls: box.send=1
return (await box.send({ to: "archive@corp.example", body: "all" })).sent;
