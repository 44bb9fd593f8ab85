const report = await demo.flaky_report({ period: 'hour' });
return report.total;
