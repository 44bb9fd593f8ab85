// case: RES-03
// expect: ok
// value: {"reads":1}
let reads = 0;
return {
  toJSON() {
    reads++;
    return { reads };
  },
};
