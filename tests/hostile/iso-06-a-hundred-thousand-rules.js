// case: ISO-06
// folder: a hundred thousand rules
// expect: not_started
// error: more than 512 KiB of rules
// error: many
// why: each of them is fine; their number is the attack
return "it was started";
