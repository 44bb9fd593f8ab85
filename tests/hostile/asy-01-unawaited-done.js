// case: ASY-01
// expect: ok
// value: 1
// outcomes: returned | returned
box.slow({ ms: 1 });
await box.slow({ ms: 120 });
return 1;
