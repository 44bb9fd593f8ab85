const name = async () => 'logs_services';
const services = await demo[await name()]({});
return services.missing.length;
