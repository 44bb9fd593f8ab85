// case: CPU-05
// expect: limit:cpu | limit:time | limit:memory | script_error | engine_fault
// limits: guest_cpu_ms_max=300
return ((1n << 8_000_000n) - 1n).toString().length;
