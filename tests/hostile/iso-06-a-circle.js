// case: ISO-06
// folder: a circle
// expect: not_started
// error: again
// error: link to a folder
return "it was started";
