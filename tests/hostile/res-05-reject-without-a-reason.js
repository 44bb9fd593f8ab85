// case: RES-05
// expect: script_error
await Promise.reject();
