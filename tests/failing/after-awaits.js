const services = await demo.logs_services({});
await new Promise((done) => setTimeout(done, 50));
const count = await demo.logs_count({});
console.log(services.services.length, count);
const first = services.services[0];
return first.owner.email;
