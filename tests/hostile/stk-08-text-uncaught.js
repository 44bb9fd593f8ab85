// case: STK-08
// expect: limit:stack
const order = {
  toString() {
    return `order ${order}`;
  },
};
return String(order);
