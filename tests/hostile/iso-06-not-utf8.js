// case: ISO-06
// folder: not UTF-8
// expect: not_started
// error: zzz.cedar
// error: line 2 is not UTF-8
return "it was started";
