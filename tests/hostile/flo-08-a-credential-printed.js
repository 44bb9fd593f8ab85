// case: FLO-08
// expect: ok
// calls: box.environment=1
// why: a tool hands out a credential that is configured here, and the script prints and returns it
const it = await box.environment({});
console.log(it.API_TOKEN);
console.error(JSON.stringify(it));
return it;
