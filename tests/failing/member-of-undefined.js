const data = await demo.logs_query({ level: 'error' });
return data.items.map((entry) => entry.message);
