// case: ARG-05
// expect: ok
// args: {"a":2}
// calls: box.echo=1
await box.echo(JSON.parse('{"a":1,"a":2}'));
