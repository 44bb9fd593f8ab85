const { services: [first] } = JSON.parse(JSON.stringify(await demo.logs_services({})));
const at = new Map([["first", first]]);
return at.get("first").nam.length;
