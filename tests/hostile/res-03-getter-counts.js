// case: RES-03
// expect: ok
// value: {"n":1}
let n = 0;
return {
  get n() {
    return ++n;
  },
};
