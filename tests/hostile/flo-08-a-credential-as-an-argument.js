// case: FLO-08
// expect: ok
// calls: box.environment=1 box.echo=1
// why: what the script never got it cannot pass on
const it = await box.environment({});
return await box.echo({ text: it.API_TOKEN });
