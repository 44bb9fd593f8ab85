// case: STK-01
// expect: limit:stack | script_error | engine_fault | ok
// why: an engine may also notice the circle and answer with an empty primitive
const o = {
  toString() {
    return "" + this;
  },
};
return `${o}`;
