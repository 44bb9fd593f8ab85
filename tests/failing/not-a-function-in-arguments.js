const tools = { sum: (a, b) => a + b };
return Math.max(1, tools.sum(1, 2), tools.product(2, 3));
