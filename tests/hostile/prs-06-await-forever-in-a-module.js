// case: PRS-06
// expect: deadlock | limit:time
export default await new Promise(() => {});
