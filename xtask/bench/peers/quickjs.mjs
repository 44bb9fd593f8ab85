// quickjs-emscripten: each sandbox has a runtime and a context, and all share one
// Wasm instance, as in this library's documentation.

import { getQuickJS } from "quickjs-emscripten";
import { measure, prelude, wrapped } from "./harness.mjs";

const MEMORY_BYTES_MAX = 256 * 1024 * 1024;
const WALL_MS_MAX = 30_000;
const quickjs = await getQuickJS();

function open() {
  const runtime = quickjs.newRuntime();
  runtime.setMemoryLimit(MEMORY_BYTES_MAX);
  const deadline = Date.now() + WALL_MS_MAX;
  runtime.setInterruptHandler(() => Date.now() > deadline);
  const context = runtime.newContext();
  const close = () => {
    context.dispose();
    runtime.dispose();
  };
  return { runtime, context, close };
}

function once(body) {
  const { runtime, context, close } = open();
  const promise = context.unwrapResult(context.evalCode(wrapped(body)));
  runtime.executePendingJobs();
  const state = context.getPromiseState(promise);
  const value = context.getNumber(context.unwrapResult(state));
  state.value.dispose();
  promise.dispose();
  close();
  return value;
}

function installTools({ runtime, context }, tools) {
  const send = context.newFunction("send", (nameHandle, argsHandle) => {
    const name = context.getString(nameHandle);
    const deferred = context.newPromise();
    tools[name](context.getString(argsHandle)).then((reply) => {
      const handle = context.newString(reply);
      deferred.resolve(handle);
      handle.dispose();
      deferred.dispose();
      runtime.executePendingJobs();
    });
    return deferred.handle.dup();
  });
  context.setProp(context.global, "send", send);
  send.dispose();
  evaluate(context, prelude("send(name, JSON.stringify(args))"));
}

function evaluate(context, text) {
  context.unwrapResult(context.evalCode(text)).dispose();
}

function start(sandbox, body, input, tools, settle) {
  const { runtime, context } = sandbox;
  installTools(sandbox, tools);
  const finish = context.newFunction("finish", (value) => settle(context.getString(value)));
  context.setProp(context.global, "finish", finish);
  finish.dispose();
  evaluate(context, `globalThis.input = ${JSON.stringify(input)}`);
  evaluate(context, `${wrapped(body)}.then((value) => finish(JSON.stringify(value)), (e) => finish("null"))`);
  runtime.executePendingJobs();
}

async function run(body, input, tools) {
  const sandbox = open();
  const text = await new Promise((settle) => start(sandbox, body, input, tools, settle));
  // The runtime is not freed, which favours this peer. Freeing a runtime that held
  // more than about 5 MB of parsed JSON fails an assertion in 0.32.0, and breaks
  // the next sandbox of the module.
  return JSON.parse(text);
}

async function hold(body, tools) {
  const sandbox = open();
  start(sandbox, body, {}, tools, () => {});
  return sandbox;
}

await measure({ once, run, hold });
