const found = await demo.logs_services({});
return found.results[0].name;
