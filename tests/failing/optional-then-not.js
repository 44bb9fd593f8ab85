const found = await demo.logs_query({});
const first = found?.items.slice(0, 3);
return first;
