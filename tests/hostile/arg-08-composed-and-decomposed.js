// case: ARG-08
// expect: ok
// args: {"path":"/srv/caf\u00e9"} | {"path":"/srv/cafe\u0301"}
// calls: box.echo=2
// why: two spellings of one name stay two byte strings
await box.echo({ path: "/srv/caf\u00e9" });
await box.echo({ path: "/srv/cafe\u0301" });
