// case: ISO-06
// folder: a linked folder
// expect: not_started
// error: more
// error: link to a folder
return "it was started";
