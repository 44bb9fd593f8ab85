// case: RES-05
// expect: script_error
throw new Proxy(
  {},
  {
    get() {
      throw 1;
    },
    getPrototypeOf() {
      throw 2;
    },
    ownKeys() {
      throw 3;
    },
  },
);
