const found = await demo.logs_services({});
let total = 0;
for (const service of found.items) {
  total += service.errors;
}
return total;
