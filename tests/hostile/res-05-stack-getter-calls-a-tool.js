// case: RES-05
// expect: script_error
// calls: box.write=0
const e = new Error("plain");
Object.defineProperty(e, "stack", {
  get() {
    box.write({ from: "the stack" });
    return "drawn";
  },
});
throw e;
