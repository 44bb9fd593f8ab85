// case: ISO-06
// folder: an id twice
// expect: not_started
// error: zzz.cedar:1
// error: flow-rule-of-two
// error: flow.cedar
// why: a permit that takes the name of a rule that forbids
return "it was started";
