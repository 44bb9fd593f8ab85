// A model's loop without a framework, over one of three interfaces: interfaces.mjs MODEL NAME
import assert from "node:assert/strict";

const { Airlock } = await import(process.env.AIRLOCK_CLIENT);
const [model, name] = process.argv.slice(2);
const airlock = await Airlock.start({
  command: process.env.AIRLOCK_BIN,
  args: ["--allow", "shop.*"],
  tools: { shop: { price: ({ item }) => item.length } },
});

async function post(path, body) {
  const headers = { "content-type": "application/json" };
  const response = await fetch(`${model}${path}`, {
    method: "POST",
    headers,
    body: JSON.stringify(body),
  });
  return response.json();
}

const loops = {
  async chat() {
    const { chat: tools, call } = airlock.tools("openai");
    const messages = [{ role: "user", content: "begin" }];
    for (;;) {
      const answer = await post("/v1/chat/completions", { model: "scripted", messages, tools });
      const { message } = answer.choices[0];
      if (!message.tool_calls) break;
      messages.push(message, ...(await Promise.all(message.tool_calls.map((it) => call(it)))));
    }
    const wrong = { id: "1", function: { name: "no_tool", arguments: "{}" } };
    assert.match((await call(wrong)).content, /no_tool/);
    const cut = { id: "2", function: { name: "run_script", arguments: "{" } };
    assert.match((await call(cut)).content, /JSON/);
  },

  async responses() {
    const { responses: tools, call } = airlock.tools("openai");
    const input = [{ role: "user", content: "begin" }];
    for (;;) {
      const { output } = await post("/v1/responses", { model: "scripted", input, tools });
      const calls = output.filter((item) => item.type === "function_call");
      if (calls.length === 0) break;
      input.push(...output, ...(await Promise.all(calls.map((it) => call(it)))));
    }
  },

  async messages() {
    const { tools, call } = airlock.tools("anthropic");
    const messages = [{ role: "user", content: "begin" }];
    for (;;) {
      const { content } = await post("/v1/messages", { model: "scripted", messages, tools });
      const calls = content.filter((block) => block.type === "tool_use");
      if (calls.length === 0) break;
      const results = await Promise.all(calls.map((it) => call(it)));
      messages.push({ role: "assistant", content }, { role: "user", content: results });
    }
    const wrong = await call({ id: "1", name: "no_tool", input: {} });
    assert.equal(wrong.is_error, true);
  },
};

await loops[name]();
await airlock.close();
