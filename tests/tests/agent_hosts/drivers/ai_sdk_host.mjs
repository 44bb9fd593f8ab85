// An agent of the AI SDK, and a person who approves in the host.
//
// Usage: ai_sdk_host.mjs MODEL URL, or … MODEL COMMAND ARGUMENT…
import { createMCPClient, ElicitationRequestSchema } from "@ai-sdk/mcp";
import { Experimental_StdioMCPTransport as Stdio } from "@ai-sdk/mcp/mcp-stdio";
import { createOpenAI } from "@ai-sdk/openai";
import { generateText, stepCountIs } from "ai";

const [url, target, ...args] = process.argv.slice(2);
const transport = target.startsWith("http://")
  ? { type: "http", url: target }
  : new Stdio({ command: target, args });
const client = await createMCPClient({ transport, capabilities: { elicitation: {} } });
client.onElicitationRequest(ElicitationRequestSchema, async () => ({
  action: "accept",
  content: { decision: "allow" },
}));
const provider = createOpenAI({ baseURL: `${url}/v1`, apiKey: "none" });
await generateText({
  model: provider("scripted"),
  tools: await client.tools(),
  stopWhen: stepCountIs(1_000),
  prompt: "begin",
});
await client.close();
