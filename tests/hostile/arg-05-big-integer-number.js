// case: ARG-05
// expect: ok
// args: {"n":9007199254740992}
// calls: box.echo=1
// why: 2^53+1 is already 2^53 when the script has it as a number
await box.echo({ n: 2 ** 53 + 1 });
