// case: GRA
// asks: box.write
// given: up to 5 of box.write in run where {"ids":[1,2]}
// expect: ok
// value: "unanswered"
// calls: box.write=0
// questions: 1
// why: lists are compared whole, order included
return await box.write({ ids: [2, 1] }).then(() => "written", (e) => e.code);
