// case: ISO-06
// folder: an odd id
// expect: not_started
// error: zzz.cedar:1
// error: an id has
// why: an id that would write a line of its own into whatever shows it
return "it was started";
