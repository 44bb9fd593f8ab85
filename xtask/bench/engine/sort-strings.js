let chance = 2026;
const words = Array.from({ length: 50_000 }, () => {
  chance = (chance * 1103515245 + 12345) % 2147483648;
  return "user-" + chance.toString(36);
});
words.sort();
return words[25_000];
