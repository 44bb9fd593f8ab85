const shop = { find: (id) => (id === 1 ? { price: 2 } : null) };
return shop.find?.(2).price;
