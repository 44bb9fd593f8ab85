// case: AMB-06
// expect: ok
// limits: guest_cpu_ms_max=5000 run_wall_ms_max=6000 console_bytes_max=4000000 value_bytes_max=4000000
// why: everything readable is handed out, and the host looks for what it planted
const strings = new Set();
const seen = new Set();
const work = [globalThis, box, clash, await box.echo({}), input];
while (work.length) {
  const x = work.pop();
  if (typeof x === "string") strings.add(x);
  if ((typeof x !== "object" && typeof x !== "function") || x === null || seen.has(x)) continue;
  seen.add(x);
  try {
    work.push(Object.getPrototypeOf(x));
    if (typeof x === "function") strings.add(String(x));
    for (const k of Reflect.ownKeys(x)) {
      strings.add(String(k));
      const d = Reflect.getOwnPropertyDescriptor(x, k);
      work.push(d.value, d.get, d.set);
      try {
        work.push(x[k]);
      } catch {}
    }
  } catch {}
}
return [...strings];
