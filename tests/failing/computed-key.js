const prices = { apple: 1, pear: 2 };
const key = 'plum';
return prices[key].toFixed(2);
