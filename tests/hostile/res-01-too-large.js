// case: RES-01
// expect: limit:payload
// limits: value_bytes_max=100000
return "v".repeat(200_000);
