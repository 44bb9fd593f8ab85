const found = await demo.logs_query({});
return Object.entries(found.totals).map(([name, count]) => `${name}=${count}`);
