// case: ARG-13
// check: warn
// expect: script_error
// name: ReferenceError
await boks.echo({});
