// case: GRA-03
// asks: box.slow
// given: up to 5 of box.slow in session
// limits: calls_in_flight_max=2
// expect: ok
// value: 5
// calls: box.slow=5
// why: calls that wait for a place in the queue take no use before they leave, and none twice
const all = Array.from({ length: 12 }, (_, n) => box.slow({ ms: 1, value: n }));
return (await Promise.allSettled(all)).filter((it) => it.status === "fulfilled").length;
