// `console`: every method calls `print(level, ...values)`.
(function ({ print, inspect }) {
  // Lists are passed on unchanged: spreading a list would call its iterator, which a script may
  // have
  // replaced.
  const { apply } = Reflect;
  const put = (level, values, first = []) => {
    const all = [level];
    for (let at = 0; at < first.length; at += 1) set(all, first[at]);
    for (let at = 0; at < values.length; at += 1) set(all, values[at]);
    apply(print, undefined, all);
  };
  const { defineProperty } = Object;
  const set = (list, value) =>
    defineProperty(list, list.length, { __proto__: null, value, writable: true, enumerable: true, configurable: true });
  const LEVELS = { debug: 0, log: 1, info: 2, warn: 3, error: 4 };
  const console = {};
  for (const name of Object.keys(LEVELS)) {
    const level = LEVELS[name];
    console[name] = { [name](...values) { put(level, values); } }[name];
  }
  const now = Date.now;
  const counts = new Map();
  const times = new Map();
  const mapGet = Function.prototype.call.bind(Map.prototype.get);
  const mapSet = Function.prototype.call.bind(Map.prototype.set);
  const mapDelete = Function.prototype.call.bind(Map.prototype.delete);

  console.trace = function trace(...values) { put(0, values); };
  console.dir = function dir(value) { print(1, inspect(value)); };
  console.assert = function assert(condition, ...values) {
    if (!condition) put(4, values, ["Assertion failed"]);
  };
  console.count = function count(label = "default") {
    const next = (mapGet(counts, `${label}`) ?? 0) + 1;
    mapSet(counts, `${label}`, next);
    print(1, `${label}: ${next}`);
  };
  console.countReset = function countReset(label = "default") { mapDelete(counts, `${label}`); };
  console.time = function time(label = "default") { mapSet(times, `${label}`, now()); };
  console.timeLog = function timeLog(label = "default", ...values) {
    const start = mapGet(times, `${label}`);
    if (start !== undefined) put(1, values, [`${label}: ${now() - start} ms`]);
  };
  console.timeEnd = function timeEnd(label = "default") {
    console.timeLog(label);
    mapDelete(times, `${label}`);
  };
  console.group = function group(...values) { if (values.length > 0) put(1, values); };
  console.groupCollapsed = console.group;
  console.groupEnd = function groupEnd() {};
  console.clear = function clear() {};
  console.table = function table(rows, columns) {
    if (rows === null || typeof rows !== "object") return print(1, rows);
    const names = ["(index)"];
    const lines = [];
    for (const index of Object.keys(rows)) {
      const row = rows[index];
      const line = { "(index)": index };
      const cells = row !== null && typeof row === "object" ? row : { Values: row };
      for (const name of columns ?? Object.keys(cells)) {
        if (!names.includes(name)) names.push(name);
        if (name in cells) line[name] = inspect(cells[name]);
      }
      lines.push(line);
    }
    const widths = names.map((name) =>
      lines.reduce((widest, line) => Math.max(widest, (line[name] ?? "").length), name.length));
    const shown = (cells) => cells.map((cell, at) => cell.padEnd(widths[at])).join(" | ").trimEnd();
    const text = [shown(names), widths.map((width) => "-".repeat(width)).join("-|-")];
    for (const line of lines) text.push(shown(names.map((name) => line[name] ?? "")));
    print(1, text.join("\n"));
  };
  Object.defineProperty(globalThis, "console", {
    value: console,
    writable: true,
    enumerable: false,
    configurable: true,
  });
})
