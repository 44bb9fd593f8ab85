// case: CPU-05
// expect: limit:cpu | limit:time | limit:memory | script_error
// limits: guest_cpu_ms_max=300
return Array.from({ length: 2 ** 53 - 1 }).length;
