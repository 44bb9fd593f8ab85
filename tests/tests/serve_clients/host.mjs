// A host on the official TypeScript SDK, in either major version: search, describe,
// run, an approval, progress and a cancellation. Prints one JSON object with its
// observations.
//
// Usage: host.mjs legacy|auto URL, or host.mjs legacy|auto COMMAND ARGUMENT…
const [mode, target, ...rest] = process.argv.slice(2);

const LIST = "return (await demo.tickets_list({})).tickets.length > 0";
const ASK = "return typeof await demo.tickets_create({ title: 'from a host' })";
const WAIT = "return await test.wait({})";
const TOOLS = ["demo.tickets_list", "demo.tickets_create", "test.wait"];
const SESSION = "dev.airlock/session";

/** The SDK's first major version supports the older era, the second one both. */
async function sdk() {
  if (mode === "legacy") {
    const root = "@modelcontextprotocol/sdk";
    const [{ Client }, stdio, http, { ElicitRequestSchema }] = await Promise.all([
      import(`${root}/client/index.js`),
      import(`${root}/client/stdio.js`),
      import(`${root}/client/streamableHttp.js`),
      import(`${root}/types.js`),
    ]);
    const call = (client, params, options) => client.callTool(params, undefined, options);
    return { Client, ...stdio, ...http, elicitation: ElicitRequestSchema, call, options: {} };
  }
  const root = "@modelcontextprotocol/client";
  const [client, stdio] = await Promise.all([import(root), import(`${root}/stdio`)]);
  const call = (client, params, options) => client.callTool(params, options);
  const options = { versionNegotiation: { mode } };
  return { ...client, ...stdio, elicitation: "elicitation/create", call, options };
}

const { Client, StdioClientTransport, StreamableHTTPClientTransport, elicitation, call, options } = await sdk();
const seen = { progress: [] };
const client = new Client({ name: "host", version: "1" }, { capabilities: { elicitation: {} }, ...options });
client.setRequestHandler(elicitation, async (request) => {
  seen.asked = request.params.message;
  return { action: "accept", content: { decision: "allow" } };
});
const transport = target.startsWith("http://")
  ? new StreamableHTTPClientTransport(new URL(target))
  : new StdioClientTransport({ command: target, args: rest });
await client.connect(transport);

let session = {};
const tool = (name, args, options) => call(client, { name, arguments: args }, options);
const run = (code, options) => tool("run_script", { code, ...session }, options);

seen.version = client.getNegotiatedProtocolVersion?.() ?? transport.protocolVersion ?? "older";
seen.listed = (await client.listTools()).tools.map((tool) => tool.name);
seen.found = (await tool("search_tools", { query: "list tickets" })).structuredContent.tools.map((tool) => tool.name);
seen.early = (await run(LIST)).content[0].text;
const handle = (await tool("get_tool_details", { tools: TOOLS }))._meta?.[SESSION];
if (handle) session = { session: handle };
seen.value = (await run(LIST)).structuredContent.value;
seen.approved = (await run(ASK)).structuredContent.status;
seen.unselected = (await client.readResource({ uri: "resource:///tool_descriptions" })).contents[0].text;
const stop = new AbortController();
const onprogress = ({ message }) => {
  seen.progress.push(message);
  if (message.includes("test.wait: allow")) stop.abort("enough");
};
seen.cancelled = await run(WAIT, { onprogress, signal: stop.signal }).then(
  () => false,
  () => true,
);
seen.after = (await run("return 1 + 1")).structuredContent.value;
console.log(JSON.stringify(seen));
await client.close();
