// case: ERR-05
// expect: limit:calls
// limits: calls_max=10
// why: a limit is no exception
try {
  for (let i = 0; i < 100; i++) await box.echo({ i });
  return "finished";
} catch {
  return "caught";
}
