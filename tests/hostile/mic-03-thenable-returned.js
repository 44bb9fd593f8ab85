// case: MIC-03
// expect: ok
// value: "inner"
return {
  then(resolve) {
    resolve("inner");
  },
};
