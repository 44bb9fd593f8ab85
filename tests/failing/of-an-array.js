const found = await demo.logs_query({});
return found.entries.message.length;
