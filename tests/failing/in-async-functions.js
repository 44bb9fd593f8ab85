const report = {
  async load(level) {
    const found = await demo.logs_query({ level });
    return report.summary(found);
  },
  summary: (found) => found.stats.total,
};
return await report.load('error');
