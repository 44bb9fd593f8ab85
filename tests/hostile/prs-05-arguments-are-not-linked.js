// case: PRS-05
// expect: ok
// value: [1,2]
function f(a) {
  arguments[0] = 2;
  return [a, arguments[0]];
}
return f(1);
