const rows = [{ n: 1 }, null];
let sum = 0;
for (const { n } of rows) sum += n;
return sum;
