// case: GRA
// asks: box.write
// given: up to 5 of box.write in run where {"path":"café"}
// expect: ok
// value: "unanswered"
// calls: box.write=0
// questions: 1
// why: it looks the same, and is another name to whoever gets it
return await box.write({ path: "cafe\u0301" }).then(() => "written", (e) => e.code);
