// case: GRA
// asks: box.write
// given: up to 9 of box.write in run but without labels
// policies: shipped
// expect: ok
// value: "unanswered"
// calls: box.write=0
// journal: "labels":["private","private:box"
// why: it was given for runs that have read nothing, and this one has
await box.echo({ text: "words of somebody else" });
return await box.write({ path: "a" }).then(() => "written", (e) => e.code);
