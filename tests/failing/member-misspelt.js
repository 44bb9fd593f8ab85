const found = await demo.logs_query({ level: 'error', limit: 3 });
const lines = found.entires.map((entry) => entry.message);
return lines;
