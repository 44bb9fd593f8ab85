// case: GRA
// asks: box.write
// given: up to 5 of box.write in run where {"n":1}
// expect: ok
// value: "unanswered"
// calls: box.write=0
// questions: 1
// why: a number is not its text
return await box.write({ n: "1" }).then(() => "written", (e) => e.code);
