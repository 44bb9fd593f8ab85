const stats = { max: 3 };
return Math.max(...stats.values);
