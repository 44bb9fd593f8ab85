// case: CPU-08
// expect: script_error
// why: a timer takes a function, never text
setTimeout("globalThis.pwned = 1", 0);
