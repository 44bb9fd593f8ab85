// case: STB-05
// expect: ok
// value: ["slow","quick",["quick","slow"]]
// calls: box.slow=2
const order = [];
const note = (x) => (order.push(x.value), x.value);
const answers = await Promise.all([
  box.slow({ ms: 5000, value: "slow" }).then(note),
  box.slow({ ms: 1, value: "quick" }).then(note),
]);
return [...answers, order];
