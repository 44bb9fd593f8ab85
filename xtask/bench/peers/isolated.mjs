// isolated-vm: each sandbox has its own isolate. Calls use `Reference.apply` with
// a promise, as the library documents. `runPump` is faster, but its user has to
// write it: all on the main thread, with a callback that collects calls and
// `applySync` to return outcomes.

import ivm from "isolated-vm";
import { measure, prelude, wrapped } from "./harness.mjs";

const MEMORY_MIB_MAX = 256;

function open() {
  const isolate = new ivm.Isolate({ memoryLimit: MEMORY_MIB_MAX });
  const context = isolate.createContextSync();
  return { isolate, context };
}

// The synchronous form, which does not switch threads.
function once(body) {
  const { isolate, context } = open();
  const value = context.evalSync(`(() => {${body}\n})()`);
  isolate.dispose();
  return value;
}

async function install(context, input, tools) {
  const call = new ivm.Reference((name, args) => tools[name](args));
  await context.global.set("call", call);
  const way = "call.apply(undefined, [name, JSON.stringify(args)], { result: { promise: true, copy: true } })";
  await context.eval(`globalThis.input = ${JSON.stringify(input)};\n${prelude(way)}`);
}

async function run(body, input, tools) {
  const { isolate, context } = open();
  await install(context, input, tools);
  const value = await context.eval(wrapped(body), { promise: true, copy: true });
  isolate.dispose();
  return value;
}

async function hold(body, tools) {
  const { isolate, context } = open();
  await install(context, {}, tools);
  const end = context.eval(wrapped(body), { promise: true, copy: true });
  return { isolate, context, end };
}

async function runPump(body, input, tools) {
  const { isolate, context } = open();
  const end = Promise.withResolvers();
  let settle;
  const send = (ticket, name, args) => {
    tools[name](args).then((reply) => settle.applySync(undefined, [ticket, reply]));
  };
  context.global.setSync("send", new ivm.Callback(send));
  context.global.setSync("finish", new ivm.Callback(end.resolve));
  context.evalSync(`globalThis.input = ${JSON.stringify(input)};
    const open = new Map();
    let next = 0;
    const call = (name, text) => new Promise((resolve) => {
      const ticket = next++;
      open.set(ticket, resolve);
      send(ticket, name, text);
    });
    globalThis.settle = (ticket, text) => {
      const resolve = open.get(ticket);
      open.delete(ticket);
      resolve(text);
    };
    ${prelude("call(name, JSON.stringify(args))")}`);
  settle = context.global.getSync("settle", { reference: true });
  context.evalSync(`${wrapped(body)}.then(finish)`);
  const value = await end.promise;
  isolate.dispose();
  return value;
}

await measure({ once, run, hold, runPump });
