function city(order) {
  return order.customer.address.city;
}
function label(order) {
  return `to ${city(order)}`;
}
return [{ customer: { name: 'Ann' } }].map(label);
