// case: FLO-08
// expect: script_error
// calls: box.environment=1
const it = await box.environment({});
throw new Error("token " + it.API_TOKEN);
