// case: STK-08
// expect: limit:stack | ok
// value: "RangeError"
// why: Boa does not let a module catch it, and ends the run
const order = {
  valueOf() {
    return +order;
  },
};
const made = () => {
  try {
    return +order;
  } catch (error) {
    return error.name;
  }
};
export default made();
