// case: CPU-06
// expect: ok
// value: 2000
let flip = 1;
const sorted = Array.from({ length: 2000 }, (_, i) => i).sort(() => (flip = -flip));
return new Set(sorted).size;
