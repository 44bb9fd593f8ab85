const price = (15.5).toFixed(200);
return price;
