// Calls every built-in function with objects that throw at their n-th use. A function that returns
// a value after such an error has invented the value.
const { apply, construct, ownKeys, getOwnPropertyDescriptor } = Reflect;
const blown = { name: "blown" };
const USES_MAX = 16;
let left = 0;
let isBlown = false;
const touch = () => {
  left -= 1;
  if (left !== 0) return;
  isBlown = true;
  throw blown;
};
const seen = new WeakMap();
const known = new WeakSet();
const lit = (value) => {
  if (value === null || (typeof value !== "object" && typeof value !== "function")) return value;
  if (known.has(value)) return value;
  if (!seen.has(value)) {
    const proxy = new Proxy(value, traps);
    seen.set(value, proxy);
    known.add(proxy);
  }
  return seen.get(value);
};
const traps = {};
for (const trap of ["getPrototypeOf", "setPrototypeOf", "isExtensible", "preventExtensions", "getOwnPropertyDescriptor",
  "defineProperty", "has", "set", "deleteProperty", "ownKeys"]) {
  traps[trap] = (...args) => { touch(); return Reflect[trap](...args); };
}
traps.get = (target, key) => {
  touch();
  const value = Reflect.get(target, key);
  const own = getOwnPropertyDescriptor(target, key);
  return own && !own.configurable ? value : lit(value);
};
traps.apply = (target, self, args) => { touch(); return lit(apply(target, self, args)); };
traps.construct = (target, args) => { touch(); return lit(construct(target, args)); };
const samples = {
  list: () => lit([3, 1, [2]]),
  text: () => lit({ toString: () => "1", valueOf: () => 1 }),
  primitive: () => lit({ [Symbol.toPrimitive]: () => 1 }),
  call: () => lit((a) => (typeof a === "number" ? a : 1)),
  iterable: () => lit({ [Symbol.iterator]: () => [[1, 2]].values() }),
  step: () => ({ __proto__: Iterator.prototype, next: lit(() => ({ value: 1, done: true })), return: () => ({}) }),
  holder: () => ({ get length() { touch(); return 1; }, get 0() { touch(); return 1; }, get value() { touch(); return 1; },
    get get() { touch(); return () => 1; }, get size() { touch(); return 1; }, get has() { touch(); return () => true; },
    get keys() { touch(); return () => [1].values(); }, get cause() { touch(); return 1; }, get message() { touch(); return "m"; } }),
  regex: () => Object.defineProperty(/a/g, "lastIndex", { value: lit({ valueOf: () => 0 }), writable: true }),
  fields: () => lit({ year: 2000, month: 1, day: 1, hours: 1, hour: 1, years: 1, unit: "hour", largestUnit: "day", roundingMode: "floor",
    timeZone: "UTC", overflow: "reject", style: "unit", currency: "USD", localeMatcher: "lookup" }),
  looked: () => Object.defineProperty(/a/g, "exec", { value: lit(() => null) }),
};
const receivers = {
  Array: [() => [3, lit({ valueOf: () => 1, toString: () => "1" }), 2], () => lit([3, 1, 2])],
  Map: [() => new Map([[1, lit({})]])],
  Set: [() => new Set([1, 2])],
  WeakMap: [() => new WeakMap()],
  Date: [() => new Date(0), () => lit(new Date(0))],
  RegExp: [samples.regex, samples.looked, () => lit(/a/g)],
  String: [() => "a1a", samples.text],
  Number: [() => 255.5],
  BigInt: [() => 255n],
  Promise: [],
  ArrayBuffer: [() => new ArrayBuffer(8)],
  DataView: [() => new DataView(new ArrayBuffer(16))],
  Uint8Array: [() => new Uint8Array([3, 1, 2])],
  TypedArray: [() => new Uint8Array([3, 1, 2]), () => new Float64Array([3, 1, 2]), () => new BigInt64Array([3n, 1n])],
  Iterator: [() => [1, 2].values(), samples.step, () => lit([1, 2].values())],
  Error: [() => new Error("x"), samples.holder],
  URL: [() => new URL("https://a.b/")],
  URLSearchParams: [() => new URLSearchParams("a=1")],
  Function: [() => (a) => a, samples.call],
};
const { Temporal, Intl } = globalThis;
if (Temporal !== undefined) {
  const makers = {
    PlainDate: [2000, 1, 1], PlainTime: [1], PlainDateTime: [2000, 1, 1], PlainYearMonth: [2000, 1], PlainMonthDay: [1, 1],
    Instant: [0n], ZonedDateTime: [0n, "UTC"], Duration: [1],
  };
  for (const [name, args] of Object.entries(makers)) receivers[`Temporal.${name}`] = [() => construct(Temporal[name], args)];
}
for (const name of ["NumberFormat", "DateTimeFormat", "Collator", "PluralRules", "ListFormat"]) {
  receivers[`Intl.${name}`] = [() => new Intl[name]()];
}
// A function that invents a value, to show that the test finds it.
const invents = { of(value) { try { return +value; } catch { return 0; } } };
const roots = { __proto__: null, TypedArray: Object.getPrototypeOf(Uint8Array), invents };
const collect = (prefix, holder) => {
  for (const name of Object.getOwnPropertyNames(holder)) {
    const value = holder[name];
    if (value !== null && (typeof value === "object" || typeof value === "function")) roots[prefix + name] = value;
  }
};
collect("", globalThis);
collect("Intl.", Intl);
collect("Temporal.", Temporal ?? {});
// Not part of the language, or would create a timer for each call.
for (const name of ["globalThis", "console", "logs", "tracker", "airlock", "setTimeout", "setInterval", "queueMicrotask"]) delete roots[name];

const patterns = [];
for (const first of Object.keys(samples)) patterns.push([first, "call"]);
for (const second of ["text", "call", "holder", "fields"]) patterns.push([null, second]);
patterns.push([null, null, "text"], [null, null, "holder"]);
const plain = [() => [1, 2], () => "a"];
const answered = new Set();
const promises = [];
let tried = 0;
const check = (name, run) => {
  for (let use = 1; use <= USES_MAX; use += 1) {
    isBlown = false;
    left = use;
    tried += 1;
    let answer;
    try {
      answer = run();
    } catch {
      left = 0;
      if (!isBlown) return;
      continue;
    }
    left = 0;
    if (!isBlown) return;
    if (answer instanceof Promise) promises.push(answer.then(() => answered.add(name), () => {}));
    else answered.add(name);
  }
};
const each = (name, f, selves, isNew) => {
  for (const self of selves) check(name, () => apply(f, self(), []));
  for (const pattern of patterns) {
    for (const other of pattern.includes(null) ? plain : [undefined]) {
      const args = () => pattern.map((part) => (part === null ? other() : samples[part]()));
      for (const self of selves) check(name, () => apply(f, self(), args()));
      if (isNew) check(`new ${name}`, () => construct(f, args()));
    }
  }
};
const members = (name, holder, selves) => {
  for (const key of ownKeys(holder)) {
    if (key === "constructor" || key === "prototype") continue;
    const own = getOwnPropertyDescriptor(holder, key);
    for (const f of [own.value, own.get, own.set]) {
      if (typeof f === "function") each(`${name}.${String(key)}`, f, selves, false);
    }
  }
};
for (const [name, root] of Object.entries(roots)) {
  members(name, root, [() => root]);
  if (typeof root !== "function") continue;
  each(name, root, [() => undefined], true);
  const of = receivers[name] ?? [() => undefined];
  if (root.prototype) members(`${name}.prototype`, root.prototype, [...of, samples.list, samples.text]);
}
await Promise.all(promises);
return { tried, answered: [...answered].sort() };
