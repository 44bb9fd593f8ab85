// case: ISO-06
// folder: a device
// expect: not_started
// error: zzz.cedar
// error: leads out of the folder
return "it was started";
