// case: ISO-06
// folder: too deep
// expect: not_started
// error: folders deep
// why: rules that are too deep to be read would not forbid
return "it was started";
