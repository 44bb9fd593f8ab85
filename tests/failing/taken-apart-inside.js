const order = { id: 7, customer: { id: 1 } };
const { id, customer: { address: { city } } } = order;
return `${id}: ${city}`;
