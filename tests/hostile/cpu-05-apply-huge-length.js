// case: CPU-05
// expect: limit:cpu | limit:time | limit:memory | limit:stack | script_error
// limits: guest_cpu_ms_max=300
return Math.max.apply(null, { length: 2 ** 32 - 1 });
