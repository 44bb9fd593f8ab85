(async () => (await demo.logs_services({})).service.name)()
