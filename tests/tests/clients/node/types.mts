// What the declarations must accept, and what they must refuse.
import { Airlock, AirlockError, type Report } from "airlock-client";

const airlock = await Airlock.start({
  config: "airlock.toml",
  tools: {
    shop: {
      price: ({ item }: { item: string }) => item.length,
      order: {
        description: "Orders an item",
        inputSchema: { type: "object", properties: { item: { type: "string" } } },
        execute: async ({ item }, { signal, progress }) => {
          progress(`ordering ${item}`, { total: 1 });
          signal.throwIfAborted();
        },
      },
    },
  },
  onApproval: ({ message, choices }) => {
    if (message.includes("price") && choices.length > 1) return { decision: "allow-tool", uses: 5 };
  },
});
const report: Report<number[]> = await airlock.run<number[]>("return [1]", {
  signal: new AbortController().signal,
  onProgress: ({ message }) => void message?.length,
});
const first: number | undefined = report.value[0];
const results = await airlock.tools("openai").call({
  type: "function_call",
  call_id: "1",
  name: "run_script",
  arguments: "{}",
});
const output: string = results.output;
const made: string[] = airlock.tools("langchain", { tool: () => "tool" });
await airlock.close();
await Airlock.start({ url: "http://127.0.0.1:8080/mcp", token: "…" });
// @ts-expect-error A running airlock cannot reach functions of this process.
await Airlock.start({ url: "http://127.0.0.1:8080/mcp", tools: {} });
// @ts-expect-error There is no such framework.
airlock.tools("pascal");
// @ts-expect-error The framework's function `tool` is missing.
airlock.tools("langchain");
// @ts-expect-error Only `start` makes clients.
new Airlock();
export { AirlockError, first, made, output };
