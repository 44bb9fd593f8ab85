// case: ISO-06
// folder: what nobody sees
// expect: not_started
// error: zzz.cedar:1
// error: U+202E
// why: what a reviewer saw is not what the parser reads
return "it was started";
