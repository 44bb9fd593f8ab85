let sum = 0;
const later = async (value) => value;
for (let i = 0; i < 50_000; i++) sum += await later(i);
return sum;
