// case: GRA
// asks: box.write
// given: up to 5 of box.write in run where {"path":"a"}
// expect: ok
// value: "unanswered"
// calls: box.write=0
// questions: 1
// why: null is a value
return await box.write({ path: "a", cc: null }).then(() => "written", (e) => e.code);
