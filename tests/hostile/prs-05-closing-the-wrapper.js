// case: PRS-05
// expect: script_error
// name: SyntaxError
// why: text that closes whatever a script is wrapped in must not escape from it
})(); globalThis.outside = true; (async () => {
