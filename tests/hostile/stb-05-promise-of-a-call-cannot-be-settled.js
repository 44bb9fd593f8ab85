// case: STB-05
// expect: ok
// value: {"value":"real"}
const pending = box.slow({ ms: 5, value: "real" });
try {
  pending.resolve?.("mine");
  pending.value = "mine";
} catch {}
return await pending;
