// case: GRA
// asks: box.write
// answers: silence
// expect: ok
// value: "left"
// calls: box.write=0
// journal: "answer":"withdrawn"
// why: a question of a run that is over cannot be answered any more
box.write({ path: "a" }).catch(() => {});
await box.echo({});
return "left";
