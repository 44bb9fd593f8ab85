// case: GRA-03
// asks: box.write
// given: up to 3 of box.write in run
// given: up to 4 of box.write in session
// expect: ok
// value: 7
// calls: box.write=7
const all = Array.from({ length: 30 }, (_, n) => box.write({ n }));
return (await Promise.allSettled(all)).filter((it) => it.status === "fulfilled").length;
