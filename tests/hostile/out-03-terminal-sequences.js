// case: OUT-03
// expect: ok
// value: "\u001b]0;title\u0007"
// console: before
// why: the report carries the characters as JSON; what a terminal gets is tested through the command
console.log("before\x1b[2J\x1b]8;;https://evil.example\x07link\x1b]8;;\x07\x1b]52;c;ZXZpbA==\x07");
console.log("overwritten\rsafe looking\x07\x07\x07\x9b31m");
return "\x1b]0;title\x07";
