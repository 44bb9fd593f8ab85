// case: STK-08
// expect: limit:stack
// why: an object whose number is asked for while its number is made has none
const order = {
  valueOf() {
    return +order;
  },
};
return +order;
