// case: AMB-03
// expect: ok
// value: true
// why: a busy loop cannot be timed against a timer
let ticks = 0;
const timer = setInterval(() => ticks++, 1);
for (let i = 0; i < 200_000; i++);
const during = ticks;
clearInterval(timer);
return during === 0;
