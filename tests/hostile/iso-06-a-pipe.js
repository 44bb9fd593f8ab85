// case: ISO-06
// folder: a pipe
// expect: not_started
// error: zzz.cedar
// error: not a file
// why: whoever reads it waits for ever
return "it was started";
