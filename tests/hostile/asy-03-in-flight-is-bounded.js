// case: ASY-03
// expect: ok
// value: true
// limits: calls_in_flight_max=4 calls_max=100
const answers = await Promise.all(Array.from({ length: 40 }, () => box.gauge({})));
return answers.every((a) => a.in_flight <= 4) && answers.some((a) => a.in_flight > 1);
