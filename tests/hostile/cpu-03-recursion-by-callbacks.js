// case: CPU-03
// expect: limit:cpu | limit:time
// limits: guest_cpu_ms_max=250
// why: native callbacks instead of loops
const ten = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9];
const walk = (depth) => ten.forEach(() => depth && walk(depth - 1));
walk(14);
return "finished";
