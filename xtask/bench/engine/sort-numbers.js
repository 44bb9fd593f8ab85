let chance = 2026;
const numbers = Array.from({ length: 100_000 }, () => {
  chance = (chance * 1103515245 + 12345) % 2147483648;
  return chance;
});
numbers.sort((a, b) => a - b);
return numbers[50_000];
