const found = await demo.logs_query({});
return found.entries.where((entry) => entry.level === 'error');
