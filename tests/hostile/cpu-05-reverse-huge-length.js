// case: CPU-05
// expect: limit:cpu | limit:time | limit:memory | script_error
// limits: guest_cpu_ms_max=300
const x = [1, 2, 3];
x.length = 2 ** 32 - 1;
x.reverse();
return x.length;
