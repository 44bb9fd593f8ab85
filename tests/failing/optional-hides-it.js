const data = await demo.logs_services({});
const name = data?.service?.[0]?.name;
return name.toUpperCase();
