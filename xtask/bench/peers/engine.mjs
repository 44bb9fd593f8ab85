// Runs a workload of `cargo xtask bench engine` in quickjs-emscripten, each time in
// a new runtime. Measures the CPU time and checks the value.
//
// Usage: node engine.mjs SCRIPT COUNT; prints {"value": …, "samples": [ms]}.

import { readFileSync } from "node:fs";
import { getQuickJS } from "quickjs-emscripten";
import { wrapped } from "./harness.mjs";

const [script, countText] = process.argv.slice(2);
const body = readFileSync(script, "utf8");
const quickjs = await getQuickJS();

function once() {
  const runtime = quickjs.newRuntime();
  runtime.setMemoryLimit(256 * 1024 * 1024);
  const context = runtime.newContext();
  const before = process.cpuUsage();
  const text = `${wrapped(body)}.then((value) => { globalThis.done = JSON.stringify(value) })`;
  context.unwrapResult(context.evalCode(text)).dispose();
  runtime.executePendingJobs();
  const { user, system } = process.cpuUsage(before);
  // The runtime is not freed, which favours this peer; quickjs.mjs explains why.
  const value = context.getString(context.getProp(context.global, "done"));
  return { value, ms: (user + system) / 1e3 };
}

const { value } = once();
const samples = Array.from({ length: Number(countText) }, () => {
  const again = once();
  if (again.value !== value) throw new Error(`${again.value}, before ${value}`);
  return again.ms;
});
process.stdout.write(JSON.stringify({ value: JSON.parse(value), samples }) + "\n");
