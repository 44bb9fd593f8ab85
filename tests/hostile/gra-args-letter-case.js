// case: GRA
// asks: box.write
// given: up to 5 of box.write in run where {"path":"a"}
// expect: ok
// value: "unanswered"
// calls: box.write=0
// questions: 1
// why: equal means equal
return await box.write({ path: "A" }).then(() => "written", (e) => e.code);
