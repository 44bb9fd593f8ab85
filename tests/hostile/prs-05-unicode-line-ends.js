// case: PRS-05
// expect: script_error
// error: at the end
// why: U+2028 and U+2029 end lines in JavaScript; positions and comments must agree on that
// expand: yes
const a = 1; // {{"\u2028" * 1}} throw new Error("at the end");
