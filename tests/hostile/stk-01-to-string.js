// case: STK-01
// expect: limit:stack
const o = {
  toString() {
    return "" + this;
  },
};
return `${o}`;
