// case: FLO-01
// policies: shipped
// expect: ok
// value: ["unanswered","unanswered","unanswered"]
// calls: box.send=0
// why: the host is one that the script names, and the rest of the address carries it out
const it = await box.echo({ text: "merger" });
const places = [`https://docs.rs/${it.text}`, `https://docs.rs/?q=${it.text}`, `https://${it.text}.docs.rs/`];
const told = [];
for (const to of places) told.push(await box.send({ to }).catch((e) => e.code));
return told;
