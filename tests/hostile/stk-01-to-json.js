// case: STK-01
// expect: limit:stack | script_error | engine_fault
const o = {
  toJSON() {
    return JSON.stringify(o);
  },
};
return JSON.stringify(o);
