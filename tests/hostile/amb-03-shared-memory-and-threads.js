// case: AMB-03
// expect: ok
// value: ["undefined","undefined","undefined","undefined"]
return [typeof SharedArrayBuffer, typeof Atomics, typeof Worker, typeof MessageChannel];
