// The code that both peers share: reads the row and the workload, and prints the
// samples. A peer passes an engine with three functions, each with a new sandbox:
//   once(body)              runs a script without tools, frees the sandbox, returns the value
//   run(body, input, tools) runs a script with its calls, frees the sandbox, promises the value
//   hold(body, tools)       runs a script to its first call, returns an object that keeps it alive
// A tool is an async function from JSON text to JSON text. Inside the sandbox it
// is `bench.<name>(object)` and resolves with an object.
//
// Usage: node PEER.mjs ROW WORK_DIR COUNT; prints {"samples": [numbers]}.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";

const WARM_UPS = 500;
const TOOLS = ["lookup", "wait", "export", "hang"];

// Returns JavaScript that defines `bench` inside the sandbox. `send` is the peer's
// expression that calls the tool `name` with the text of `args` and promises a text.
export const prelude = (send) =>
  `globalThis.bench = {};
   for (const name of ${JSON.stringify(TOOLS)}) {
     bench[name] = async (args) => JSON.parse(await ${send});
   }`;

export const wrapped = (body) => `(async () => {${body}\n})()`;

export async function measure(engine) {
  const [row, dir, countText] = process.argv.slice(2);
  const count = Number(countText);
  const text = (name) => readFileSync(join(dir, name), "utf8");
  const samples = await rows[row](engine, text, count);
  process.stdout.write(JSON.stringify({ samples }) + "\n");
}

const rows = {
  cold(engine, text) {
    expect(engine.once(text("one.js")), 2);
    return [];
  },

  warm(engine, text, count) {
    const body = text("one.js");
    const samples = [];
    for (let i = -WARM_UPS; i < count; i++) {
      const start = performance.now();
      const value = engine.once(body);
      const end = performance.now();
      expect(value, 2);
      if (i >= 0) samples.push((end - start) * 1e3);
    }
    return samples;
  },

  // A sample is the time between the arrivals of two calls at the tool.
  async calls(engine, text, count, run = engine.run) {
    const result = text("result.json");
    const times = [];
    const tools = {
      async lookup() {
        times.push(performance.now());
        return result;
      },
    };
    const input = { args: JSON.parse(text("args.json")), count: WARM_UPS + count };
    const perCall = JSON.parse(result).items.length;
    expect(await run(text("calls.js"), input, tools), input.count * perCall);
    return times.slice(WARM_UPS).map((time, i) => (time - times[WARM_UPS + i - 1]) * 1e3);
  },

  "calls-pump"(engine, text, count) {
    return rows.calls(engine, text, count, engine.runPump);
  },

  async concurrent(engine, text, count) {
    const tools = {
      async wait(args) {
        await pause(JSON.parse(args).ms);
        return '{"ok":true}';
      },
    };
    return repeat(count, async () => {
      expect(await engine.run(text("concurrent.js"), { count: 1000 }, tools), 1000);
    });
  },

  async filter(engine, text, count) {
    const big = text("big.json");
    const tools = { export: async () => big };
    const expected = text("filtered.json");
    return repeat(count, async () => {
      const value = await engine.run(text("filter.js"), {}, tools);
      expect(JSON.stringify(value), expected);
    });
  },

  async waiting(engine, text, count) {
    const body = text("waiting.js");
    let arrived = 0;
    const tools = {
      hang() {
        arrived += 1;
        return new Promise(() => {});
      },
    };
    await engine.hold(body, tools);
    const before = pssKib();
    const held = [];
    for (let i = 0; i < count; i++) held.push(await engine.hold(body, tools));
    while (arrived < count + 1) await pause(5);
    await pause(200);
    const each = (pssKib() - before) / count;
    expect(held.length, count);
    return [each];
  },
};

async function repeat(count, work) {
  const samples = [];
  for (let i = -1; i < count; i++) {
    const start = performance.now();
    await work();
    if (i >= 0) samples.push(performance.now() - start);
  }
  return samples;
}

function pssKib() {
  const rollup = readFileSync("/proc/self/smaps_rollup", "utf8");
  return Number(/^Pss:\s+(\d+) kB/m.exec(rollup)[1]);
}

function expect(value, expected) {
  if (value !== expected) throw new Error(`expected ${expected}, got ${value}`);
}
