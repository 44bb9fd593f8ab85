// case: GRA
// asks: box.write
// given: up to 5 of box.write in run where {"ids":[1]}
// expect: ok
// value: "unanswered"
// calls: box.write=0
// questions: 1
// why: a list that begins in the same way is another list
return await box.write({ ids: [1, 2] }).then(() => "written", (e) => e.code);
