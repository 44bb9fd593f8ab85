// case: MEM-03
// expect: ok
// value: ["RangeError","RangeError","RangeError"]
const tries = [() => "ab".repeat(2 ** 29), () => "x".padStart(2 ** 30), () => "x".padEnd(2 ** 40, "yz")];
return tries.map((attempt) => { try { return attempt().length; } catch (error) { return error.name; } });
