// case: ISO-06
// folder: other letters
// expect: not_started
// error: zzz.CEDAR
// error: must end in
return "it was started";
