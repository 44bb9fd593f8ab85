// case: CPU
// expect: limit:cpu | limit:time | limit:stack | limit:memory | script_error | engine_fault
// limits: guest_cpu_ms_max=250
// why: a prototype chain that grows while it is walked
const grow = () => new Proxy({}, { getPrototypeOf: grow, has: undefined });
return grow() instanceof function f() {};
