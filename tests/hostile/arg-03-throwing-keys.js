// case: ARG-03
// expect: script_error
// error: no keys for you
// calls: box.echo=0
await box.echo(
  new Proxy(
    {},
    {
      ownKeys() {
        throw new Error("no keys for you");
      },
    },
  ),
);
