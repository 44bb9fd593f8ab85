const big = Object.fromEntries(Array.from({ length: 500 }, (_, i) => ['key' + i, i]));
return big.total.sum;
