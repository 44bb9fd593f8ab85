// case: ISO-06
// folder: half a rule
// expect: not_started
// error: zzz.cedar:
// why: the file was cut while it was written; what is missing may have forbidden
return "it was started";
