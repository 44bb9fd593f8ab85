// case: ERR-06
// expect: ok
// value: true
// limits: guest_cpu_ms_max=4000 run_wall_ms_max=5000
// why: no reachable function makes code from text
let made = 0;
const seen = new Set();
const work = [globalThis, box, box.echo, await box.echo({ a: [1] }), (await box.fail({}).catch((e) => e))];
while (work.length) {
  const x = work.pop();
  if ((typeof x !== "object" && typeof x !== "function") || x === null || seen.has(x)) continue;
  seen.add(x);
  let keys = [];
  try {
    keys = Reflect.ownKeys(x);
    work.push(Object.getPrototypeOf(x));
  } catch {}
  for (const k of keys) {
    try {
      const d = Reflect.getOwnPropertyDescriptor(x, k);
      work.push(d.value, d.get, d.set);
    } catch {}
  }
  if (typeof x === "function" && x.name.endsWith("Function")) {
    try {
      x("return 1");
      made++;
    } catch {}
    try {
      new x("return 1");
      made++;
    } catch {}
  }
}
return made === 0 && seen.size > 500;
