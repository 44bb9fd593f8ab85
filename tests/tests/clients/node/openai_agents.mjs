// An agent of the OpenAI Agents SDK: openai_agents.mjs MODEL
import { Agent, OpenAIProvider, Runner, setTracingDisabled, tool } from "@openai/agents";

const { Airlock } = await import(process.env.AIRLOCK_CLIENT);
const airlock = await Airlock.start({
  command: process.env.AIRLOCK_BIN,
  args: ["--allow", "shop.*"],
  tools: { shop: { price: ({ item }) => item.length } },
});
setTracingDisabled(true);
const modelProvider = new OpenAIProvider({ baseURL: `${process.argv[2]}/v1`, apiKey: "none" });
const tools = airlock.tools("openai-agents", { tool });
const agent = new Agent({ name: "host", model: "scripted", tools });
await new Runner({ modelProvider }).run(agent, "begin");
await airlock.close();
