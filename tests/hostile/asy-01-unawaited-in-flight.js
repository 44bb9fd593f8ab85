// case: ASY-01
// expect: ok
// value: 1
// calls: box.slow=1 box.echo=1
// outcomes: returned | returned
// why: a call in flight when the script returns is awaited if it may write, and its outcome is recorded
box.slow({ ms: 300 });
await box.echo({});
return 1;
