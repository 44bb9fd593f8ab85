// case: GRA
// asks: box.write
// given: up to 5 of box.write in run where {"n":100}
// expect: ok
// value: true
// questions: 0
// args: {"n":100}
// why: the other side of it: one number has one form
return (await box.write({ n: 1e2 })).ok;
