// case: RES-05
// expect: script_error
// why: what a getter starts while the error is described never leaves
// calls: box.write=0
const e = new Error();
Object.defineProperty(e, "message", {
  get() {
    box.write({ from: "the message" });
    return "described";
  },
});
throw e;
