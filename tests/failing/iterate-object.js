const found = await demo.logs_services({});
for (const service of found) console.log(service.name);
