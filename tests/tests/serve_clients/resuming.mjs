// A host on the official TypeScript SDK that resumes runs. Prints one JSON object with its
// observations.
//
// Usage: resuming.mjs legacy|auto NAME URL begin, or resuming.mjs legacy|auto NAME URL RUN
const [mode, name, url, step] = process.argv.slice(2);

const WRONG = "const all = await w.read({title: 'r'}); await w.create({title: 'a'}); return all.missing.length";
const RIGHT = WRONG.replace(".missing", "");
const WAITS = "return await w.ask({title: 'b'})";

/** The SDK's first major version supports the older era, the second one both. */
async function sdk() {
  if (mode === "legacy") {
    const root = "@modelcontextprotocol/sdk";
    const [{ Client }, http] = await Promise.all([import(`${root}/client/index.js`), import(`${root}/client/streamableHttp.js`)]);
    return { Client, ...http, options: {} };
  }
  const client = await import("@modelcontextprotocol/client");
  return { ...client, options: { versionNegotiation: { mode } } };
}

const { Client, StreamableHTTPClientTransport, options } = await sdk();
const client = new Client({ name, version: "1" }, options);
await client.connect(new StreamableHTTPClientTransport(new URL(url)));
const tool = (name, args) => client.callTool({ name, arguments: args });

const seen = {};
if (step === "begin") {
  const failed = await tool("run_script", { code: WRONG });
  seen.failed = failed.content[0].text;
  seen.corrected = (await tool("run_script", { code: RIGHT, resume: failed.structuredContent.run })).structuredContent;
  seen.paused = (await tool("run_script", { code: WAITS })).structuredContent;
} else {
  const resumed = await tool("resume_run", { run: step });
  seen.resumed = { text: resumed.content[0].text, report: resumed.structuredContent ?? null };
}
console.log(JSON.stringify(seen));
await client.close();
