// case: ERR-01
// expect: ok
// value: ["fulfilled","rejected","fulfilled"]
const all = await Promise.allSettled([box.echo({}), box.fail({}), box.echo({})]);
return all.map((x) => x.status);
