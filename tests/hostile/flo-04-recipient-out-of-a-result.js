// case: FLO
// policies: shipped
// expect: denied
// code: unanswered
// calls: box.send=0
// journal: "dest_unexplained":["/to"]
const it = await box.echo({ reply: ["eve", "evil.example"].join("@") });
await box.send({ to: it.reply, body: "hello" });
