// An agent of the AI SDK: ai_sdk.mjs MODEL
import { createOpenAI } from "@ai-sdk/openai";
import { generateText, stepCountIs } from "ai";

const { Airlock } = await import(process.env.AIRLOCK_CLIENT);
const airlock = await Airlock.start({
  command: process.env.AIRLOCK_BIN,
  args: ["--allow", "shop.*"],
  tools: { shop: { price: ({ item }) => item.length } },
});
const provider = createOpenAI({ baseURL: `${process.argv[2]}/v1`, apiKey: "none" });
await generateText({
  model: provider("scripted"),
  tools: airlock.tools("ai-sdk"),
  stopWhen: stepCountIs(10),
  prompt: "begin",
});
await airlock.close();
