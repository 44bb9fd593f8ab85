// case: PRS-01
// expect: ok
// expand: yes
// value: [3000,3000,true,6]
// why: the guard before the parser counts what nests, not what looks like it
const text = "{{"(" * 3000}}";
const template = `{{"[" * 3000}}`;
// {{"{" * 3000}}
/* {{"(" * 3000}} */
const cls = /[{{"(" * 3000}}]/.test("(");
return [text.length, template.length, cls, 12 / 2 /* ( */];
