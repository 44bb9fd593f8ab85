// case: GRA
// asks: box.write
// given: up to 5 of box.write in run where {"path":"a","dry":true}
// expect: ok
// value: "unanswered"
// calls: box.write=0
// questions: 1
// why: what is left out may be the very thing that made it harmless
return await box.write({ path: "a" }).then(() => "written", (e) => e.code);
