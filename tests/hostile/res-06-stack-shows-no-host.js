// case: RES-06
// expect: ok
// value: "clean"
function deep() {
  return new Error("here").stack ?? "";
}
const text = deep();
return /\.rs|\/root|\/home|\/work|wasm|prelude|cargo/i.test(text) ? text : "clean";
