// A host on the official TypeScript SDK: search, describe, run, progress, an
// approval and a cancellation. Prints one JSON object with what it saw.
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { ElicitRequestSchema } from "@modelcontextprotocol/sdk/types.js";

const LIST = "return (await demo.tickets_list({})).tickets.length";
const ASK = "const made = await demo.tickets_create({ title: 'from a host' }); return typeof made";
const seen = {};

const client = new Client({ name: "host", version: "1" }, { capabilities: { elicitation: {} } });
client.setRequestHandler(ElicitRequestSchema, async (request) => {
  seen.asked = request.params.message;
  return { action: "accept", content: { decision: "allow" } };
});
await client.connect(new StdioClientTransport({ command: process.argv[2], args: process.argv.slice(3) }));

const call = (name, args, options) => client.callTool({ name, arguments: args }, undefined, options);
seen.listed = (await client.listTools()).tools.map((tool) => tool.name);
seen.found = (await call("search_tools", { query: "list tickets" })).structuredContent.tools.map((tool) => tool.name);
seen.early = (await call("run_script", { code: LIST })).content[0].text;
await call("get_tool_details", { tools: ["demo.tickets_list", "demo.tickets_create", "demo.logs_services"] });
seen.progress = [];
const onprogress = ({ message }) => seen.progress.push(message);
seen.status = (await call("run_script", { code: LIST }, { onprogress })).structuredContent.status;
seen.approved = (await call("run_script", { code: ASK })).structuredContent.status;
seen.unselected = (await client.readResource({ uri: "resource:///tool_descriptions" })).contents[0].text;
const stop = new AbortController();
const running = call("run_script", { code: "await new Promise((r) => setTimeout(r, 25000))" }, { signal: stop.signal });
stop.abort("enough");
seen.cancelled = await running.then(() => false, () => true);
seen.after = (await call("run_script", { code: "return 1 + 1" })).structuredContent.value;
console.log(JSON.stringify(seen));
await client.close();
