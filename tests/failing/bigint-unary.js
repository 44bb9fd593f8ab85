const big = [1n, 2n];
return big.map((it) => +it);
