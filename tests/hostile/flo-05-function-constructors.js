// case: FLO-05
// expect: ok
// value: ["refused","refused","refused","refused"]
const sources = [() => {}, async () => {}, function* () {}, async function* () {}];
return sources.map((f) => {
  try {
    f.constructor("return 1");
    return "made";
  } catch {
    return "refused";
  }
});
