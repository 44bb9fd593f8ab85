const total = 0;
for (const n of [1, 2]) total += n;
return total;
