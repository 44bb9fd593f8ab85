// case: GRA-06
// asks: *.write
// given: up to 9 of box.write in run where {"path":"a"}
// expect: ok
// value: ["unanswered",true]
// calls: box.write=1 twin.write=0
// question: twin.write {"path":"a"}
// why: a tool of the same name, with the same arguments, on another server
const other = await twin.write({ path: "a" }).catch((e) => e.code);
return [other, (await box.write({ path: "a" })).ok];
