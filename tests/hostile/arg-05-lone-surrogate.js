// case: ARG-05
// expect: script_error | ok
// why: half a character has no bytes; it is refused or replaced, and never sent as it is
await box.echo({ text: "\ud83d" });
