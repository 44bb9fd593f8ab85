// case: STK-09
// expect: ok
// limits: guest_cpu_ms_max=20000 run_wall_ms_max=40000
// value: []
// why: where the stack ends inside of what is built in, it is an error there too: at every depth the answer is the right one or a RangeError
const rows = [[1, [2]], [3]];
const nested = { a: [{ b: "c" }], d: new Date(5) };
const self = [1];
self.push(self);
class Point { #x = 1; get x() { return this.#x; } }
const ways = {
  date: [() => structuredClone(new Date(5)) instanceof Date, true],
  map: [() => structuredClone(new Map([[1, 2]])).size, 1],
  set: [() => structuredClone(new Set([1])).size, 1],
  buffer: [() => structuredClone(new ArrayBuffer(3)).byteLength, 3],
  bytes: [() => structuredClone(new Uint8Array([7]))[0], 7],
  expression: [() => structuredClone(/a/g).flags, "g"],
  locale: [() => rows.toLocaleString(), "1,2,3"],
  within: [() => String(self), "1,"],
  join: [() => rows.join(";"), "1,2;3"],
  stringify: [() => JSON.stringify(nested), '{"a":[{"b":"c"}],"d":"1970-01-01T00:00:00.005Z"}'],
  parse: [() => JSON.parse('[{"a":[1]}]')[0].a[0], 1],
  revive: [() => JSON.parse("[1,2]", (_, value) => value)[1], 2],
  sort: [() => [3, 1, 2].sort((a, b) => a - b).join(""), "123"],
  sorted: [() => ["b", "a"].toSorted()[0], "a"],
  flat: [() => rows.flat(Infinity).length, 3],
  replace: [() => "a-b".replace(/-/g, () => "+"), "a+b"],
  matchAll: [() => [..."aba".matchAll(/a/g)].length, 2],
  split: [() => "a1b2".split(/\d/).length, 3],
  date2: [() => new Date("2024-05-17T00:00:00Z").getTime(), 1715904000000],
  lenient: [() => new Date("May 17, 2024").getTime(), 1715904000000],
  number: [() => (1234.5).toLocaleString(), "1,234.5"],
  format: [() => new Intl.NumberFormat("en-US", { style: "percent" }).format(0.5), "50%"],
  day: [() => new Date(0).toLocaleDateString(), "1/1/1970"],
  compare: [() => "a".localeCompare("b"), -1],
  url: [() => new URL("https://a.b/c?d=e").searchParams.get("d"), "e"],
  parameters: [() => new URLSearchParams({ a: "1" }).toString(), "a=1"],
  text: [() => new TextDecoder().decode(new TextEncoder().encode("é")), "é"],
  base64: [() => atob(btoa("x")), "x"],
  big: [() => BigInt("12") ** 2n, 144n],
  reflect: [() => Reflect.defineProperty(new Uint8Array(1), 0, { value: { valueOf: () => 1 } }), true],
  proxy: [() => Object.keys(new Proxy({ a: 1 }, { ownKeys: (t) => Reflect.ownKeys(t) })).length, 1],
  isArray: [() => Array.isArray(new Proxy([], {})), true],
  instance: [() => new Point() instanceof Point, true],
  private: [() => new Point().x, 1],
  spread: [() => [...new Set([1, 2])].length + Math.max(...[1, 5]), 7],
  from: [() => Array.from({ length: 2 }, (_, at) => at)[1], 1],
  entries: [() => Object.fromEntries(new Map([["a", 1]])).a, 1],
  groups: [() => Object.groupBy([1, 2], (n) => (n > 1 ? "b" : "a")).b[0], 2],
  tag: [() => String.raw`a${1}b`, "a1b"],
  error: [() => String(new TypeError("x")), "TypeError: x"],
  cause: [() => new Error("x", { cause: 1 }).cause, 1],
  bound: [() => ((a, b) => a + b).bind(null, 1)(2), 3],
  iterate: [() => [1, 2, 3].values().map((n) => n * 2).toArray()[2], 6],
  generator: [() => [...(function* () { yield* [1, 2]; })()].length, 2],
};
const wrong = [];
// Goes down to where the stack ends, and tries on the way back until it succeeds at three depths.
const probe = (name, way, right, use) => {
  let left = 3;
  const down = () => {
    try {
      use(down);
    } catch (error) {
      if (!(error instanceof RangeError)) wrong.push([name, `${error.name}: ${error.message}`]);
    }
    if (left === 0) return;
    let answer;
    try {
      answer = way();
    } catch (error) {
      if (!(error instanceof RangeError)) wrong.push([name, `${error.name}: ${error.message}`]);
      return;
    }
    left -= 1;
    if (!Object.is(answer, right)) wrong.push([name, typeof answer === "bigint" ? `${answer}` : answer]);
  };
  down();
  if (left > 0) wrong.push([name, "never"]);
};
// From several places, and with frames of several sizes, so that the end is met at many places.
const from = (frames, way) => (frames === 0 ? way() : from(frames - 1, way));
const uses = [(down) => down(), (down) => { const a = 1, b = 2, c = 3; down(a, b, c); }];
for (const [name, [way, right]] of Object.entries(ways)) {
  for (const use of uses) {
    for (let frames = 0; frames < 4; frames += 1) from(frames, () => probe(name, way, right, use));
  }
}
return wrong.slice(0, 20);
