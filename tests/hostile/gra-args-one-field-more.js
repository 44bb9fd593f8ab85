// case: GRA
// asks: box.write
// given: up to 5 of box.write in run where {"path":"a"}
// expect: ok
// value: "unanswered"
// calls: box.write=0
// questions: 1
// why: a field that nobody said yes to may change what the others mean
return await box.write({ path: "a", mode: "append" }).then(() => "written", (e) => e.code);
