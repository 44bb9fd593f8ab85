// case: MIC-03
// expect: deadlock | limit:time
return { then() {} };
