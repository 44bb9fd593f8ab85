// case: FLO-01
// policies: shipped
// expect: ok
// value: 6
// calls: box.send=0
// why: no single call carries enough to be noticed
const it = await box.echo({ text: "merger" });
const told = [];
for (const letter of it.text) told.push(await box.send({ to: "boss@corp.example", body: letter }).catch((e) => e.code));
return told.filter((code) => code === "unanswered").length;
