// case: CPU-03
// expect: limit:cpu | limit:time
// limits: guest_cpu_ms_max=250
// why: no single frame loops often, so a counter per frame would never trip
function level(depth) {
  for (let i = 0; i < 50; i++) {
    if (depth > 0) level(depth - 1);
  }
}
level(12);
return "finished";
