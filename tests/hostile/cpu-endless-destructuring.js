// case: CPU
// expect: limit:cpu | limit:time | limit:memory
// limits: guest_cpu_ms_max=300 guest_memory_bytes_max=67108864
const endless = { [Symbol.iterator]: () => ({ next: () => ({ done: false, value: 1 }) }) };
const [first, ...rest] = endless;
return [first, rest.length];
