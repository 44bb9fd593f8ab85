// case: STB-03
// expect: ok
// value: ["tool-failed",[]]
const caught = [];
for (const key of ["code", "tool", "message", "content", "retryable"]) {
  Object.defineProperty(Object.prototype, key, {
    set(v) {
      caught.push(key);
    },
    get: () => "mine",
    configurable: true,
  });
}
let seen;
try {
  await box.fail({});
} catch (e) {
  seen = [e.code, caught.slice()];
}
for (const key of ["code", "tool", "message", "content", "retryable"]) delete Object.prototype[key];
return seen;
