// case: ASY-01
// expect: script_error
// calls: box.write=0
// outcomes: not-sent
box.write({ late: true });
throw new Error("ended");
