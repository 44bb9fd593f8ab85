// case: ARG-05
// expect: ok
// args: {"__proto__":{"admin":true}}
// calls: box.echo=1
await box.echo(JSON.parse('{"__proto__":{"admin":true}}'));
