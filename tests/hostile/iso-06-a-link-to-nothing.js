// case: ISO-06
// folder: a link to nothing
// expect: not_started
// error: zzz.cedar
// why: a file whose rules are gone is not a file without rules
return "it was started";
