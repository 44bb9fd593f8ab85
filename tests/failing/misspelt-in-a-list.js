const { services } = await demo.logs_services({});
const busiest = services.sort((a, b) => b.errors - a.errors)[0];
const { nmae } = busiest;
return nmae.toUpperCase();
