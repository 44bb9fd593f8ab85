// One scenario of the client per run: scenarios.mjs NAME [URL or program of a server]
import assert from "node:assert/strict";
import { mkdirSync, readFileSync, readdirSync } from "node:fs";

// The client's temporary files go where the test can see them.
process.env.TMPDIR = `${process.env.HOME}/tmp`;
mkdirSync(process.env.TMPDIR, { recursive: true });
const { Airlock, AirlockError } = await import(process.env.AIRLOCK_CLIENT);
const command = process.env.AIRLOCK_BIN;
const [name, url] = process.argv.slice(2);

const LOOP = `const prices = [];
for (const item of ["tea", "milk", "coffee"]) prices.push(await shop.price({ item }));
return prices`;
const price = ({ item }) => item.length;

function start(options) {
  return Airlock.start({ command, ...options });
}

/** Returns the processes that this one started. */
function children() {
  const { pid } = process;
  return readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").trim().split(" ").filter(Boolean);
}

/** Returns a promise, and the function that fulfils it. */
function event() {
  let happened;
  return [new Promise((resolve) => (happened = resolve)), (value) => happened(value)];
}

const scenarios = {
  async grant() {
    const questions = [];
    const airlock = await start({
      tools: { shop: { price } },
      onApproval(question) {
        questions.push(question.message);
        return { decision: "allow-tool", uses: 10 };
      },
    });
    const report = await airlock.run(LOOP);
    assert.deepEqual([report.status, report.value], ["done", [3, 4, 6]]);
    // The first grant holds for equal arguments, the second one for all.
    assert.equal(questions.length, 2);
    assert.match(questions[0], /Allow `shop\.price`\?[^]*"item": "tea"/);
    assert.deepEqual(report.calls.map((call) => call.decision), ["ask", "ask", "allow"]);
    await airlock.close();
  },

  async rules() {
    const called = [];
    const tools = { shop: { price, order: () => called.push("order") } };
    const args = ["--allow", "shop.*", "--deny", "shop.order"];
    const airlock = await start({ tools, args });
    const report = await airlock.run("await shop.price({ item: 'tea' }); await shop.order({})");
    assert.deepEqual([report.status, report.code], ["failed", "denied"]);
    assert.deepEqual(report.calls.map((call) => call.outcome), ["returned", "denied"]);
    assert.deepEqual(called, []);
    await airlock.close();
  },

  async refusal() {
    const called = [];
    const tools = { shop: { order: () => called.push("order") } };
    const answers = [undefined, () => undefined, () => null, () => ({ uses: 5 }), () => "refuse"];
    for (const onApproval of answers) {
      const airlock = await start({ tools, onApproval });
      const report = await airlock.run("await shop.order({})");
      assert.equal(report.status, "failed");
      assert.match(report.code, onApproval ? /^refused$/ : /^unanswered$/);
      await airlock.close();
    }
    const [warned, warns] = event();
    process.once("warning", (warning) => warns(warning.message));
    const failing = () => {
      throw new Error("no person is here");
    };
    for (const [onApproval, why] of [
      [failing, /"refused"/],
      [() => "yes", /yes.*expected `allow`/],
    ]) {
      const airlock = await start({ tools, onApproval });
      const report = await airlock.run("await shop.order({})");
      assert.equal(report.status, "failed");
      assert.match(JSON.stringify(report), why);
      await airlock.close();
    }
    assert.match(await warned, /the call is refused: no person is here/);
    assert.deepEqual(called, []);
  },

  async approval() {
    const answers = ["allow", "refuse"];
    const choices = [];
    const called = [];
    const airlock = await start({
      tools: { shop: { order: ({ item }) => called.push(item) } },
      async onApproval(question) {
        choices.push(question.choices.map((choice) => choice.decision));
        return answers.shift();
      },
    });
    const report = await airlock.run(
      "await shop.order({ item: 1 }); await shop.order({ item: 1 })",
    );
    assert.deepEqual([report.status, report.code], ["failed", "refused"]);
    assert.deepEqual(called, [1]);
    assert.equal(choices.length, 2);
    assert.ok(choices[0].includes("allow") && choices[0].includes("refuse"));
    await airlock.close();
  },

  async forms() {
    const asked = [];
    const onApproval = (question) => asked.push(question);
    const args = ["--server", `test=${url}`, "--allow", "test.*"];
    const airlock = await start({ args, onApproval });
    const call = "return await test.elicitation({ message: 'Your name?' })";
    const report = await airlock.run(call);
    assert.equal(report.status, "done", JSON.stringify(report));
    assert.match(JSON.stringify(report.value), /decline/);
    await airlock.close();
    // Not even a form that looks like a question of airlock.
    const { decide } = await import(process.env.AIRLOCK_CLIENT.replace("index", "approvals"));
    const decision = { enum: ["allow", "refuse"] };
    const form = { message: "Allow?", requestedSchema: { properties: { decision } } };
    const ofServer = { ...form, _meta: { "dev.airlock/server": "test" } };
    const { signal } = new AbortController();
    assert.deepEqual(await decide(onApproval, ofServer, signal), { action: "decline" });
    assert.deepEqual(asked, []);
  },

  async cancellation() {
    const [started, starts] = event();
    const [aborted, aborts] = event();
    const slow = (_args, { signal }) => {
      starts();
      return new Promise((_resolve, reject) => {
        signal.addEventListener("abort", () => {
          aborts();
          reject(signal.reason);
        });
      });
    };
    const airlock = await start({ tools: { shop: { slow, price } }, args: ["--allow", "shop.*"] });
    const controller = new AbortController();
    const run = airlock.run("await shop.slow({})", { signal: controller.signal });
    await started;
    controller.abort(new Error("no longer needed"));
    await assert.rejects(run, { message: "no longer needed" });
    await aborted;
    // The client can be used further.
    assert.deepEqual((await airlock.run(LOOP)).value, [3, 4, 6]);
    const { signal } = controller;
    await assert.rejects(airlock.run("return 1", { signal }), { message: "no longer needed" });
    await airlock.close();
  },

  async progress() {
    const count = (_args, { progress }) => {
      progress("first half", { progress: 1, total: 2 });
      progress("second half", { progress: 2, total: 2 });
    };
    const airlock = await start({ tools: { shop: { count } }, args: ["--allow", "shop.*"] });
    const heard = [];
    const onProgress = ({ progress, message }) => heard.push([progress, message]);
    const report = await airlock.run("return await shop.count({})", { onProgress });
    assert.deepEqual([report.status, report.value], ["done", null]);
    assert.match(heard[0][1], /has started/);
    assert.ok(heard.some(([, message]) => /2 of 2, second half/.test(message)), String(heard));
    await airlock.close();
  },

  async large() {
    const value = "é\"".repeat(3_333_333);
    const args = ["--allow", "shop.*", "--limit", "value=16MiB"];
    const airlock = await start({ tools: { shop: { whole: () => value } }, args });
    const report = await airlock.run("return await shop.whole({})");
    assert.equal(report.status, "done", report.error?.message);
    assert.ok(Buffer.byteLength(report.value) > 9_999_000);
    assert.ok(report.value === value, "another value");
    const list = "Array.from({ length: 9000 }, (_, n) => n)";
    const spelled = await airlock.run(`return JSON.stringify(${list}, null, 2)`);
    assert.equal(typeof spelled.value, "string");
    const numbers = await airlock.run(`return ${list}`);
    assert.equal(numbers.value.length, 9000);
    await airlock.close();
  },

  async crash() {
    const [started, starts] = event();
    const slow = () => {
      starts();
      return new Promise(() => {});
    };
    const airlock = await start({ tools: { shop: { slow } }, args: ["--allow", "shop.*"] });
    const open = [1, 2, 3].map(() => airlock.run("await shop.slow({})"));
    await started;
    process.kill(Number(children()[0]), "SIGKILL");
    const ended = await Promise.allSettled(open);
    const errors = new Set(ended.map((it) => it.reason));
    assert.equal(errors.size, 1);
    const [error] = errors;
    assert.ok(error instanceof AirlockError);
    assert.equal(error.code, "airlock-ended");
    assert.match(error.message, /why: the signal SIGKILL ended it[^]*next: start airlock again/);
    await assert.rejects(airlock.run("return 1"), error);
    // Nothing keeps this process alive, although the client is not closed.
  },

  async values() {
    const args = ["--allow", "shop.*"];
    const fail = () => {
      throw new Error("out of stock");
    };
    const circle = () => {
      const it = {};
      it.it = it;
      return it;
    };
    const described = {
      description: "Echoes its argument",
      inputSchema: { type: "object", properties: { value: {} }, required: ["value"] },
      outputSchema: {},
      annotations: { readOnlyHint: true },
      execute: ({ value }) => value,
    };
    const airlock = await start({ tools: { shop: { echo: described, fail, circle } }, args });
    for (const value of [1, "[1]", "", null, true, [1, { a: "ü" }], { result: 2, b: [] }]) {
      const input = value;
      const report = await airlock.run("return await shop.echo({ value: input })", { input });
      assert.deepEqual(report.value, value);
    }
    const failed = await airlock.run("await shop.fail({})");
    assert.match(failed.error.message, /out of stock/);
    const invalid = await airlock.run("await shop.echo({ other: 1 })");
    assert.notEqual(invalid.status, "done");
    const circular = await airlock.run("await shop.circle({})");
    assert.match(circular.error.message, /cannot be written as JSON/);
    const computed = "const name = 'echo'; return await shop[name]({ value: 1 })";
    assert.equal((await airlock.run(computed, { tools: ["shop.echo"] })).value, 1);
    const { tools, callTool } = airlock.tools("mcp");
    assert.ok(tools.some((tool) => tool.name === "run_script" && tool.inputSchema));
    const found = await callTool({ name: "search_tools", arguments: { query: "echo" } });
    assert.match(found.content[0].text, /Echoes its argument/);
    assert.match(airlock.instructions, /run_script/);
    await airlock.close();
  },

  async errors() {
    const whyAndNext = (code, why) => (error) => {
      assert.equal(error.code, code, error.message);
      assert.match(error.message, why);
      assert.match(error.message, /\n {2}why: .+[^]*\n next: .+/);
      return true;
    };
    const nothing = { command: "/no/such/program" };
    await assert.rejects(start(nothing), whyAndNext("cannot-start", /no program/));
    const onStderr = () => {};
    const unknown = { args: ["--confg"], onStderr };
    await assert.rejects(start(unknown), whyAndNext("cannot-start", /did you mean `--config`/));
    const taken = { tools: { airlock: { price } }, onStderr };
    await assert.rejects(start(taken), whyAndNext("cannot-start", /`airlock`/));
    const both = { url: "http://127.0.0.1:1/mcp", tools: {} };
    await assert.rejects(start(both), whyAndNext("invalid-options", /cannot be used together/));
    const nobody = Airlock.start({ url: "http://127.0.0.1:1/mcp" });
    await assert.rejects(nobody, whyAndNext("connection-lost", /ECONNREFUSED/));
    const airlock = await start({});
    assert.throws(() => airlock.tools("pascal"), whyAndNext("unknown-framework", /ai-sdk/));
    assert.throws(() => airlock.tools("langchain"), whyAndNext("missing-function", /tool/));
    const { request } = airlock.tools("mcp");
    await assert.rejects(request("no/method"), whyAndNext("request-failed", /no\/method/));
    await airlock.close();
    await assert.rejects(airlock.run("return 1"), whyAndNext("closed", /closed/));
  },

  async token() {
    const module = process.env.AIRLOCK_CLIENT.replace("index.mjs", "host-tools.mjs");
    const { HostTools } = await import(module);
    const own = new HostTools({ shop: { price } });
    await own.listen();
    const { shop } = own.configuration().mcpServers;
    assert.match(shop.url, /^http:\/\/127\.0\.0\.1:/);
    const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/list" });
    const ask = async (headers, method = "POST") => {
      const response = await fetch(shop.url, { method, headers, body });
      return [response.status, await response.text()];
    };
    const authorization = `Bearer ${own.token}`;
    assert.equal((await ask({}))[0], 401);
    assert.equal((await ask({ authorization: authorization.slice(0, -1) }))[0], 401);
    assert.equal((await ask({ authorization, origin: "http://evil.example" }))[0], 403);
    assert.match((await ask({ authorization }))[1], /"price"/);
    own.close();
    // The token is in no file and on no command line.
    const airlock = await start({ tools: { shop: { price } }, args: ["--allow", "shop.*"] });
    const [pid] = children();
    const variable = /AIRLOCK_CLIENT_TOKEN=([^\0]+)/.exec(readFileSync(`/proc/${pid}/environ`));
    assert.ok(variable[1].length > 40);
    assert.ok(!readFileSync(`/proc/${pid}/cmdline`, "utf8").includes(variable[1]));
    assert.deepEqual(readdirSync(process.env.TMPDIR), []);
    await airlock.close();
  },

  async closing() {
    const airlock = await start({ tools: { shop: { price } }, args: ["--allow", "shop.*"] });
    assert.equal(children().length, 1);
    await Promise.all([airlock.close(), airlock.close()]);
    assert.equal(children().length, 0);
  },

  async http() {
    const questions = [];
    const airlock = await Airlock.start({
      url,
      onApproval: ({ message }) => {
        questions.push(message);
        return "allow";
      },
    });
    const list = "const { tickets } = await demo.tickets_list({}); return tickets.length";
    assert.ok((await airlock.run(list)).value > 0);
    const ticket = "{ title: 'x', body: 'y', priority: 'normal' }";
    const filed = await airlock.run(`return await demo.tickets_create(${ticket})`);
    assert.equal(filed.status, "done", JSON.stringify(filed));
    assert.equal(questions.length, 1);
    const heard = [];
    const onProgress = ({ message }) => heard.push(message);
    const long = await airlock.run("return 'x'.repeat(3_000_000)", { onProgress });
    assert.equal(long.value.length, 3_000_000);
    assert.match(heard[0], /has started/);
    const controller = new AbortController();
    const endless = airlock.run("for (;;) await demo.tickets_list({})", {
      signal: controller.signal,
      onProgress: () => controller.abort(new Error("enough")),
    });
    await assert.rejects(endless, { message: "enough" });
    await airlock.close();
  },
};

await scenarios[name]();
