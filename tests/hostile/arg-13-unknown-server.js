// case: ARG-13
// expect: script_error
// name: ReferenceError
await boks.echo({});
