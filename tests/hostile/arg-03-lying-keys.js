// case: ARG-03
// expect: ok | script_error
// why: keys that are not there are not sent
const liar = new Proxy(
  { a: 1 },
  {
    ownKeys: () => ["a", "b", "c"],
  },
);
return await box.echo(liar);
