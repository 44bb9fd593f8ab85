// case: ISO-06
// folder: a link out
// expect: not_started
// error: zzz.cedar
// error: leads out of the folder
// why: the rules would be somebody else's, and nobody who reviews the folder sees them
return "it was started";
