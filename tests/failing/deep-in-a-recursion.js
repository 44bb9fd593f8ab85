const walk = (n) => {
  if (n === 0) return undefined.value;
  return walk(n - 1);
};
return walk(30);
