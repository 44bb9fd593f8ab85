// case: CPU-05
// expect: limit:cpu | limit:time | limit:memory | script_error
// limits: guest_cpu_ms_max=300
return new Array(2 ** 32 - 1).fill(0).length;
