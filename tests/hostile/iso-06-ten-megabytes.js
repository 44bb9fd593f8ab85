// case: ISO-06
// folder: a file of ten megabytes
// expect: not_started
// error: zzz.cedar
// error: larger than
return "it was started";
