const levels = ['error', 'warn'];
const all = await Promise.all(levels.map(async (level) => {
  const found = await demo.logs_query({ level, limit: 2 });
  return found.entries[0].context.host;
}));
return all;
