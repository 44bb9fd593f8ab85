// case: STK-03
// expect: ok | limit:stack | limit:memory | limit:cpu | limit:time | script_error
// limits: guest_cpu_ms_max=1000
const down = async (n) => (n === 0 ? 0 : (await down(n - 1)) + 1);
return await down(100_000);
