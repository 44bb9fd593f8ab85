// case: CPU-06
// expect: ok
// value: [3000,3000,3000]
let flip = 1;
const contrary = () => (flip = -flip);
const numbers = Float64Array.from({ length: 3000 }, (_, i) => (i * 7919) % 3001);
return [
  new Set(numbers.toSorted(contrary)).size,
  new Set(numbers.sort(contrary)).size,
  new Set(Array.from(numbers).toSorted(() => Math.random() - 0.5)).size,
];
