const orders = [{ lines: [{ price: 1 }] }, { items: [{ price: 2 }] }];
const total = orders
  .flatMap((order) => order.lines.map((line) => line.price))
  .reduce((a, b) => a + b, 0);
return total;
