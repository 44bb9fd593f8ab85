// Compares BigInts with numbers. Prints `<`, `=` or `>`, `?` if there is no order, and `!` if the
// operators contradict each other.
const bigints = [
  0n, 1n, -1n, 2n, -2n, 3n, -3n, 7n, -7n, 2n ** 31n, -(2n ** 31n), -(2n ** 31n) - 1n, 2n ** 32n, -(2n ** 32n),
  2n ** 53n, 2n ** 53n + 1n, -(2n ** 53n) - 1n, 2n ** 63n, -(2n ** 63n), 2n ** 64n - 1n, 2n ** 64n, 2n ** 64n + 1n,
  -(2n ** 64n), -(2n ** 64n) + 1n, -(2n ** 64n) - 1n, 10n ** 300n, -(10n ** 300n), 2n ** 1023n, -(2n ** 1023n),
  2n ** 1024n - 2n ** 970n, 2n ** 1024n - 2n ** 971n, -(2n ** 1024n) + 2n ** 971n, 2n ** 1024n, -(2n ** 1024n),
];
const numbers = [
  0, -0, 0.5, -0.5, 0.999, -0.999, 1, -1, 1.5, -1.5, -1.001, 2, -2, 2.5, -2.5, 3, -3, 3.5, -3.5, 7.25, -7.25,
  2 ** 31, -(2 ** 31), 2 ** 31 + 0.5, -(2 ** 31) - 0.5, 2 ** 32, -(2 ** 32), 2 ** 32 - 0.5, 2 ** 53, -(2 ** 53),
  2 ** 53 + 2, -(2 ** 53) - 2, 2 ** 63, -(2 ** 63), 2 ** 64, -(2 ** 64), 2 ** 64 + 4096, 1e300, -1e300,
  2 ** 1023, -(2 ** 1023), Number.MAX_VALUE, -Number.MAX_VALUE, 5e-324, -5e-324, 2e-308, -2e-308,
  Infinity, -Infinity, NaN,
];
const order = (a, b) => {
  const said = [a < b, a <= b, a > b, a >= b, a == b, b > a, b >= a, b < a, b <= a, b == a];
  const [lt, le, gt, ge, eq, gt2, ge2, lt2, le2, eq2] = said;
  if (a === b || b === a || (a != b) === eq || (b != a) === eq2) return '!';
  if (lt !== gt2 || le !== ge2 || gt !== lt2 || ge !== le2 || eq !== eq2) return '!';
  if (le !== (lt || eq) || ge !== (gt || eq) || lt + gt + eq > 1) return '!';
  return lt ? '<' : gt ? '>' : eq ? '=' : '?';
};
for (const a of bigints) console.log(numbers.map((b) => order(a, b)).join(''));
// BigInts as strings and objects, and in built-in functions that compare.
console.log(-1n < '-0.5', -1n < '0', '-2' < -1n, Object(-1n) < -0.5, -1n < { valueOf: () => -0.5 });
console.log(String([-1, -1n, -1.5, -2n, -0.5, 0n, 0.5, 1n, -2.5].sort((x, y) => (x < y ? -1 : x > y ? 1 : 0))));
console.log([-0.5, -1.5].includes(-1n), [-1].includes(-1n), -1n == -1, new Set([-1n, -1]).size);
