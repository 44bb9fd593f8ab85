// case: RES-01
// expect: script_error
// error: not this one
return {
  get member() {
    throw new Error("not this one");
  },
};
