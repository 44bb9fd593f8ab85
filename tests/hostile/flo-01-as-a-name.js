// case: FLO-01
// policies: shipped
// expect: ok
// value: "unanswered"
// calls: box.write=0
// why: what was read is a member's name and no value
const it = await box.echo({ text: "the merger closes on Friday" });
return await box.write({ path: "notes.md", [it.text]: 1 }).then(() => "written", (e) => e.code);
