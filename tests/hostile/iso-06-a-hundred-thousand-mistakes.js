// case: ISO-06
// folder: a hundred thousand mistakes
// expect: not_started
// error: many0.cedar:1
// error: more than 512 KiB of rules
// why: the files are measured before anything is looked for in them
return "it was started";
