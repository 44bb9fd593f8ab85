// case: GRA
// asks: box.write
// given: up to 5 of box.write in run where {"a":{"b":1}}
// expect: ok
// value: "unanswered"
// calls: box.write=0
// questions: 1
// why: a name with a slash is no path into an object
return await box.write({ "a/b": 1 }).then(() => "written", (e) => e.code);
