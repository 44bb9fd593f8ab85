// case: STK-07
// expect: ok
// limits: guest_cpu_ms_max=5000 run_wall_ms_max=10000
// value: []
// why: whatever calls itself by way of the language is stopped by an error that the script sees
const json = { toJSON() { return JSON.stringify(json); } };
const getting = { get x() { return getting.x; } };
const setting = { set x(value) { setting.x = value; } };
const trapped = new Proxy({}, { get: (_, key) => trapped[key], has: (_, key) => key in trapped });
const spread = { [Symbol.iterator]() { return [...spread]; } };
const number = () => ({ valueOf() { return number() + 1; } });
const text = () => ({ toString() { return `${[text()]}`; } });
const sort = () => [2, 1].sort(() => sort());
const replace = (part) => part.replace(/a/, replace);
const map = () => [1].map(map);
const from = () => Array.from([1], from);
const revive = () => JSON.parse("1", revive);
const apply = () => Reflect.apply(Reflect.apply, undefined, [apply, undefined, []]);
const bound = () => apply.call(bound);
const held = [() => held[0]()];
const mixed = () => [1].map(() => [2, 1].sort(() => [1].flatMap(mixed)));
class Made { constructor() { Reflect.construct(Made, []); } }
class Child extends Made { constructor() { super(); new Child(); } }
function* inner() { yield* inner(); }
const ways = {
  json: () => JSON.stringify(json),
  getting: () => getting.x,
  setting: () => { setting.x = 1; },
  trapped: () => trapped.x,
  asked: () => "x" in trapped,
  spread: () => [...spread],
  number: () => number() + 1,
  text: () => `${text()}`,
  sort, map, from, revive, apply, bound, mixed,
  replace: () => replace("a"),
  held: () => held[0](),
  made: () => new Made(),
  child: () => new Child(),
  inner: () => [...inner()],
};
const others = [];
for (const [name, way] of Object.entries(ways)) {
  try {
    way();
    others.push(name);
  } catch (error) {
    if (!(error instanceof RangeError)) others.push(`${name}: ${error}`);
  }
}
return others;
