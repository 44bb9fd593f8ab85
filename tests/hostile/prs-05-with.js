// case: PRS-05
// expect: script_error
// name: SyntaxError
with ({ a: 1 }) {
  a;
}
