// case: GRA
// asks: box.write
// given: up to 5 of box.write in run where {"where":{"id":1}}
// expect: ok
// value: "unanswered"
// calls: box.write=0
// questions: 1
// why: a field more, one level down
return await box.write({ where: { id: 1, all: true } }).then(() => "written", (e) => e.code);
