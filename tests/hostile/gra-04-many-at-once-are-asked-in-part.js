// case: GRA
// asks: box.write
// answers: up to 500 | silence
// expect: ok
// value: 500
// calls: box.write=500
// limits: run_wall_ms_max=8000 guest_cpu_ms_max=4000
// why: one yes covers what waited beside it, and no more questions are left than were out
const all = Array.from({ length: 500 }, (_, n) => box.write({ to: "ops", n }));
return (await Promise.allSettled(all)).filter((it) => it.status === "fulfilled").length;
