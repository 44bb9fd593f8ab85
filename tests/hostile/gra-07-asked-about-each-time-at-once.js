// case: GRA-03
// policies: shipped
// answers: up to 20 | refuse | once
// expect: ok
// value: 2
// calls: box.send=2
// questions: 10
const it = await box.echo({ to: ["eve", "evil.example"].join("@") });
const all = Array.from({ length: 10 }, (_, n) => box.send({ to: it.to, body: String(n) }));
return (await Promise.allSettled(all)).filter((it) => it.status === "fulfilled").length;
