// case: STK-08
// expect: ok
// limits: guest_cpu_ms_max=10000 run_wall_ms_max=20000
// value: []
// why: what comes to itself while a value is made of it has none; no engine may invent one
const number = { valueOf() { return +number; } };
const text = { toString() { return `${text}`; } };
const other = { toString: undefined, valueOf() { return String(other); } };
const first = { valueOf() { return second - 1; } };
const second = { valueOf() { return first * 2; } };
const hinted = { [Symbol.toPrimitive](hint) { return hint === "number" ? +hinted : `${hinted}`; } };
const big = { valueOf() { return BigInt(big); } };
const child = Object.create({ valueOf() { return this * 1; } });
class Money { valueOf() { return this > 0 ? 1 : 0; } }
const money = new Money();
const called = Object.assign(() => {}, { toString() { return called + ""; } });
const hooked = new Proxy({}, { get: (_, key) => key === Symbol.toPrimitive ? () => hooked + 1 : undefined });
const date = Object.assign(new Date(0), { valueOf() { return date - 0; }, toISOString() { return JSON.stringify(date); } });
const error = Object.assign(new Error("x"), { toString() { return String(error); } });
const named = new Error("x");
Object.defineProperty(named, "message", { get() { return String(named); } });
Object.defineProperty(named, "name", { get() { return Error.prototype.toString.call(named); } });
const list = Object.assign([1], { join() { return String(list); } });
const locale = { toLocaleString() { return [locale].toLocaleString(); } };
const bytes = new Uint8Array(2);
const filled = { valueOf() { return Reflect.defineProperty(bytes, 0, { value: filled }); } };
const stored = { valueOf() { bytes[0] = stored; return 1; } };
const typed = { valueOf() { return new Float64Array([typed])[0]; } };
const view = new DataView(new ArrayBuffer(8));
const seen = { valueOf() { return view.getInt8(seen); } };
const index = { valueOf() { return "abc".at(index); } };
const count = { valueOf() { return "abc".repeat(count); } };
const length = { get length() { return Array.from(length).length; } };
const keyed = { toString() { return { [keyed]: 1 }[keyed]; } };
const search = { toString() { return "abc".indexOf(search); } };
const replacer = { toString() { return "abc".replace("a", replacer); } };
const pattern = { toString() { return new RegExp(pattern).source; } };
const expression = /a/g;
expression.lastIndex = { valueOf() { return expression.exec("a") === null ? 0 : 1; } };
const tested = Object.assign(/a/, { exec() { return tested.test("a"); } });
const flagged = /a/;
Object.defineProperty(flagged, "global", { get() { return flagged.flags; } });
const radix = { valueOf() { return (255).toString(radix); } };
const parsed = { toString() { return parseInt(parsed); } };
const symbol = { toString() { return Symbol(symbol).description; } };
const json = { toJSON() { return JSON.stringify([json]); } };
const cloned = { get x() { return structuredClone(cloned); } };
const part = { valueOf() { return new Date(part).getTime(); } };
const setTo = { valueOf() { return new Date(0).setHours(setTo); } };
const spread = { get x() { return { ...spread }; } };
const picked = { get x() { const { x } = picked; return x; } };
const rest = { get x() { const { y, ...others } = rest; return others; } };
const tagged = { toString() { return String.raw`${tagged}`; } };
const raw = { get raw() { return String.raw(raw); } };
const instance = { [Symbol.hasInstance]: () => ({}) instanceof instance };
const matched = { get [Symbol.match]() { return "a".startsWith(matched); } };
const split = { [Symbol.split]: () => "a".split(split) };
const flat = { get [Symbol.isConcatSpreadable]() { return [].concat(flat).length; } };
const shaped = [1];
Object.defineProperty(shaped, "constructor", { get() { return shaped.map((x) => x); } });
const compared = { valueOf: () => [2, 1].sort(() => compared)[0] };
const equal = { valueOf() { return equal == 1; } };
const loose = { valueOf() { return loose < 1n; } };
const shifted = { valueOf() { return shifted << 1; } };
const raised = { valueOf() { return raised ** 2; } };
const counted = { valueOf() { let n = counted; return n++; } };
const parts = new Intl.NumberFormat();
const formatted = { valueOf() { return parts.format(formatted).length; } };
const url = { toString() { return new URL(url).href; } };
const encoded = { toString() { return encodeURIComponent(encoded); } };
const collated = { toString() { return "a".localeCompare(collated); } };
const wrapped = { valueOf() { return BigInt.asUintN(8, BigInt(wrapped)); } };
const grouped = () => Object.groupBy([1], grouped);
const keys = new Proxy({}, { ownKeys: () => Object.keys(keys) });
const has = new Proxy({}, { has: () => "x" in has });
const deleted = new Proxy({}, { deleteProperty: () => delete deleted.x });
const defined = new Proxy({}, { defineProperty: () => Reflect.defineProperty(defined, "x", { value: 1 }) });
const described = new Proxy({}, { getOwnPropertyDescriptor: () => Object.getOwnPropertyDescriptor(described, "x") });
const prototype = new Proxy({}, { getPrototypeOf: () => Object.getPrototypeOf(prototype) });
const extensible = new Proxy({}, { isExtensible: () => Object.isExtensible(extensible) });
const prevented = new Proxy({}, { preventExtensions: () => Reflect.preventExtensions(prevented) });
const inherited = new Proxy({}, { setPrototypeOf: () => Reflect.setPrototypeOf(inherited, null) });
const ways = {
  number: () => +number,
  sum: () => number + 1,
  text: () => `${text}`,
  string: () => String(text),
  other: () => `${other}`,
  first: () => first + 0,
  hintedNumber: () => +hinted,
  hintedText: () => `${hinted}`,
  big: () => BigInt(big),
  child: () => child * 1,
  money: () => money > 0,
  called: () => called + "",
  hooked: () => hooked + 1,
  date: () => date - 0,
  dateJson: () => JSON.stringify(date),
  error: () => String(error),
  message: () => String(named),
  list: () => String(list),
  locale: () => [locale].toLocaleString(),
  filled: () => Reflect.defineProperty(bytes, 0, { value: filled }),
  stored: () => { bytes[0] = stored; },
  typed: () => new Float64Array([typed]),
  seen: () => view.getInt8(seen),
  index: () => "abc".at(index),
  count: () => "abc".repeat(count),
  length: () => Array.from(length),
  keyed: () => ({ [keyed]: 1 }),
  search: () => "abc".indexOf(search),
  replacer: () => "abc".replace("a", replacer),
  pattern: () => new RegExp(pattern),
  expression: () => expression.exec("a"),
  tested: () => tested.test("a"),
  flagged: () => flagged.flags,
  radix: () => (255).toString(radix),
  parsed: () => parseInt(parsed),
  symbol: () => Symbol(symbol),
  json: () => JSON.stringify(json),
  cloned: () => structuredClone(cloned),
  part: () => new Date(part),
  setTo: () => new Date(0).setHours(setTo),
  spread: () => ({ ...spread }),
  picked: () => picked.x,
  rest: () => rest.x,
  tagged: () => String.raw`${tagged}`,
  raw: () => String.raw(raw),
  instance: () => ({}) instanceof instance,
  matched: () => "a".startsWith(matched),
  split: () => "a".split(split),
  flat: () => [].concat(flat),
  shaped: () => shaped.map((x) => x),
  compared: () => [2, 1].sort(() => compared),
  equal: () => equal == 1,
  loose: () => loose < 1n,
  shifted: () => shifted << 1,
  raised: () => raised ** 2,
  counted: () => { let n = counted; return n++; },
  formatted: () => parts.format(formatted),
  url: () => new URL(url),
  encoded: () => encodeURIComponent(encoded),
  collated: () => "a".localeCompare(collated),
  wrapped: () => BigInt(wrapped),
  grouped: () => grouped(),
  keys: () => Object.keys(keys),
  has: () => "x" in has,
  deleted: () => delete deleted.x,
  defined: () => Reflect.defineProperty(defined, "x", { value: 1 }),
  described: () => Object.getOwnPropertyDescriptor(described, "x"),
  prototype: () => Object.getPrototypeOf(prototype),
  extensible: () => Object.isExtensible(extensible),
  prevented: () => Reflect.preventExtensions(prevented),
  inherited: () => Reflect.setPrototypeOf(inherited, null),
};
const others = [];
for (const [name, way] of Object.entries(ways)) {
  try {
    others.push([name, typeof way()]);
  } catch (error) {
    if (!(error instanceof RangeError)) others.push([name, `${error.name}: ${error.message}`]);
  }
}
return others;
