// case: PRS-06
// expect: deadlock | limit:time
await new Promise(() => {});
