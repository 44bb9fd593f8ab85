// case: OUT-06
// expect: ok | script_error
// console: still printed
console.log("still printed");
console.log({
  toString() {
    throw new Error("from toString");
  },
  get x() {
    throw new Error("from a getter");
  },
  [Symbol.toPrimitive]() {
    throw new Error("from toPrimitive");
  },
});
return 1;
