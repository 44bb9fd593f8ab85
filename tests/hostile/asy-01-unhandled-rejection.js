// case: ASY-01
// expect: ok
// value: 1
// why: nobody waits for the failure, so it is a warning
// calls: box.fail=1
box.fail({});
await box.slow({ ms: 30 });
return 1;
