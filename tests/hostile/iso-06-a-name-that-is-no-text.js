// case: ISO-06
// folder: a name that is no text
// expect: not_started
// error: must end in
return "it was started";
