// case: STK-01
// expect: limit:stack | script_error | engine_fault
const o = {
  toString() {
    return "" + this;
  },
};
return `${o}`;
