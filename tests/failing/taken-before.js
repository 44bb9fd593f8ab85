const { items } = await demo.logs_query({ level: 'error' });
return items.map((item) => item.id);
