// case: GRA-03
// asks: box.write
// answers: up to 20 in run | silence
// limits: ask_wall_ms_max=200 run_wall_ms_max=120000
// expect: ok
// value: 20
// calls: box.write=20
const all = Array.from({ length: 50 }, (_, n) => box.write({ to: "ops", n }));
return (await Promise.allSettled(all)).filter((it) => it.status === "fulfilled").length;
