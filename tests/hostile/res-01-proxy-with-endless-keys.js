// case: RES-01
// expect: limit:payload | limit:memory | limit:cpu | limit:time | script_error
// limits: guest_cpu_ms_max=1000 value_bytes_max=100000
const keys = Array.from({ length: 50_000 }, (_, i) => "k" + i);
return new Proxy(
  {},
  {
    ownKeys: () => keys,
    getOwnPropertyDescriptor: () => ({ enumerable: true, configurable: true, value: 1 }),
    get: (t, k, self) => (typeof k === "string" && k.startsWith("k") ? self : undefined),
  },
);
