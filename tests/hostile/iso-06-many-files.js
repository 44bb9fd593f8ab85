// case: ISO-06
// folder: many files
// expect: not_started
// error: more than 1000 files
return "it was started";
