// An agent of LangChain: langchain.mjs MODEL
import { tool } from "@langchain/core/tools";
import { ChatOpenAI } from "@langchain/openai";
import { createAgent } from "langchain";

const { Airlock } = await import(process.env.AIRLOCK_CLIENT);
const airlock = await Airlock.start({
  command: process.env.AIRLOCK_BIN,
  args: ["--allow", "shop.*"],
  tools: { shop: { price: ({ item }) => item.length } },
});
const configuration = { baseURL: `${process.argv[2]}/v1` };
const model = new ChatOpenAI({ model: "scripted", apiKey: "none", configuration });
const agent = createAgent({ model, tools: airlock.tools("langchain", { tool }) });
await agent.invoke({ messages: [{ role: "user", content: "begin" }] });
await airlock.close();
