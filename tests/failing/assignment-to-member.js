const byLevel = {};
for (const entry of (await demo.logs_query({})).entries) {
  byLevel[entry.level].count += 1;
}
return byLevel;
