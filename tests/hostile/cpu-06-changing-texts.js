// case: CPU-06
// expect: ok
// value: 1000
// why: without a comparator the order is that of the texts, and these texts change with every look
let looks = 0;
const items = Array.from({ length: 1000 }, (_, id) => ({ id, toString: () => String((looks++ * 7919) % 1009) }));
return new Set(items.sort().map((item) => item.id)).size;
