const load = (period) => demo.flaky_report({ period });
return Promise.all(['day', 'hour'].map((period) => load(period)));
