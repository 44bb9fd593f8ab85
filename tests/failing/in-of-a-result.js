const { services } = await demo.logs_services({});
return "api" in services[0].nam;
