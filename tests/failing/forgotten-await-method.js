async function numbers() { return [1, 2, 3]; }
return numbers().map((n) => n * 2);
