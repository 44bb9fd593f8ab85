// case: STK-08
// expect: limit:stack | ok
// value: "RangeError"
// why: no function of the script lies between; Boa ends the run
const list = [1];
list.join = list.toString;
try {
  return String(list);
} catch (error) {
  return error.name;
}
