// case: MEM-03
// expect: script_error | limit:memory | limit:cpu | limit:time | ok
// limits: guest_cpu_ms_max=300
const a = new Array(2 ** 32 - 1);
return a.concat(a).length;
