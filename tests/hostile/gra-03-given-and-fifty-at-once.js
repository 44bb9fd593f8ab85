// case: GRA-03
// asks: box.write
// given: up to 20 of box.write in session
// limits: run_wall_ms_max=120000
// expect: ok
// value: 20
// calls: box.write=20
const all = Array.from({ length: 50 }, (_, n) => box.write({ n }));
return (await Promise.allSettled(all)).filter((it) => it.status === "fulfilled").length;
