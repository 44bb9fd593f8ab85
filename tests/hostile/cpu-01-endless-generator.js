// case: CPU-01
// expect: limit:cpu | limit:time
// limits: guest_cpu_ms_max=250
function* forever() {
  for (let i = 0; ; i++) yield i;
}
let last;
for (const i of forever()) last = i;
return last;
