// case: ASY-03
// expect: ok
// value: [10000,49995000]
// limits: calls_max=20000 run_wall_ms_max=20000 guest_cpu_ms_max=10000
// journal order: yes
// kept mib max: 32
// why: the report of 10,000 calls and what the tools wrote down of them are alive when memory is measured
const answers = await Promise.all(Array.from({ length: 10_000 }, (_, id) => box.read({ id })));
return [answers.length, answers.reduce((sum, a) => sum + a.id, 0)];
