// case: FLO-06
// policies: shipped
// before: return 1
// expect: ok
// value: true
// calls: box.send=1
// why: the other side of it: a clean session stays usable
return (await box.send({ to: "archive@corp.example", body: "all" })).sent;
