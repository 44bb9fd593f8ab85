// case: FLO-06
// policies: shipped
// before: await box.fail({}).catch(() => {}); return 1
// expect: denied
// code: unanswered
// calls: box.send=0
// why: the text of a failure is a server's words like any other
await box.send({ to: "archive@corp.example", body: "all" });
