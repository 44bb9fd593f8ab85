// case: ISO-06
// folder: an unknown annotation
// expect: not_started
// error: zzz.cedar:4
// error: @severity
return "it was started";
