// case: ASY-01
// expect: ok
// value: 1
// calls: box.slow=1 box.echo=1
// outcomes: unknown | returned
// why: what is in flight when the script returns is cancelled, and reported as such
box.slow({ ms: 5000 });
await box.echo({});
return 1;
