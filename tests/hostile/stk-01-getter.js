// case: STK-01
// expect: limit:stack | script_error | engine_fault
const o = {
  get again() {
    return this.again;
  },
};
return o.again;
