// case: FLO-01
// policies: shipped
// expect: ok
// value: true
// calls: box.read=1 box.send=1
// journal: flow-explained
// why: nothing foreign was read, and the script names who gets it: nobody needs to be asked
const it = await box.read({ id: 7 });
return (await box.send({ to: "boss@corp.example", body: String(it.id) })).sent;
