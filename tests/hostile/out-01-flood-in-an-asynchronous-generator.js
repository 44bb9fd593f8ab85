// case: OUT-01
// expect: limit:output
// limits: console_bytes_max=65536 console_flood_bytes_max=4194304 guest_cpu_ms_max=2500 run_wall_ms_max=3000
// console: xxxxxxxx
// console bytes max: 65700
// why: the end by a flood comes to the generator while its `return` is waited for
async function* lines() {
  try {
    yield 1;
  } finally {
    for (;;) console.log("x".repeat(1e4));
  }
}
const all = lines();
await all.next();
await all.return(1);
