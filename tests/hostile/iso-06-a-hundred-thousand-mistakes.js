// case: ISO-06
// folder: a hundred thousand mistakes
// expect: not_started
// error: many0.cedar:1
// error: @ovner
// error: more)
// why: what is wrong is counted to a bound, and the first of it has its place
return "it was started";
