const counts = new Map([['error', 3]]);
return counts.error.toFixed();
