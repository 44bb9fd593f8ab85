// case: PRS-06
// expect: script_error | ok
// why: whatever it holds, no place on the host is in it
export default JSON.stringify(import.meta);
