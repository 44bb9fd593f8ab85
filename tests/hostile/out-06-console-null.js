// case: OUT-06
// expect: ok | script_error
// why: the script breaks its own console, and nothing else
globalThis.console = null;
return 1;
