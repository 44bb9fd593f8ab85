const found = await demo.logs_query({});
const { start, end } = found.range;
return end - start;
