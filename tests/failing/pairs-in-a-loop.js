let sum = 0;
for (const [key, { n }] of Object.entries({ a: { n: 1 }, b: null })) {
  sum += n + key.length;
}
return sum;
