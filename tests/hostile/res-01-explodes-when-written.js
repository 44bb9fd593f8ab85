// case: RES-01
// expect: limit:payload | limit:memory | limit:cpu | limit:time
// limits: value_bytes_max=100000 guest_cpu_ms_max=1500
// why: shared parts are small in memory and endless in text
let o = "0123456789";
for (let i = 0; i < 40; i++) o = [o, o];
return o;
