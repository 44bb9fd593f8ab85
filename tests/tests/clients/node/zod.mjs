// Schemas of zod: what scripts see of them, defaults, and checks that JSON Schema has no word for.
import assert from "node:assert/strict";
import { z } from "zod";

const { Airlock, AirlockError } = await import(process.env.AIRLOCK_CLIENT);
const command = process.env.AIRLOCK_BIN;
const args = ["--allow", "shop.*"];
const inputSchema = z.object({
  item: z.string().refine((it) => it !== "stone", "not sold here"),
  count: z.number().int().default(2),
});
const outputSchema = z.object({ total: z.number() });
const execute = ({ item, count }) => ({ total: item.length * count });

/** Returns a schema like one of a version without Standard JSON Schema. */
function older(schema) {
  const { validate, vendor, version } = schema["~standard"];
  return new Proxy(schema, {
    get: (it, name) => (name === "~standard" ? { validate, vendor, version } : it[name]),
  });
}

async function check(inputSchema, options) {
  const price = { inputSchema, outputSchema, execute };
  const airlock = await Airlock.start({ command, args, tools: { shop: { price } }, ...options });
  const details = await airlock.tools("mcp").callTool({
    name: "get_tool_details",
    arguments: { tools: ["shop.price"] },
  });
  assert.match(details.content[0].text, /item: string[^]*total: number/);
  const report = await airlock.run("return await shop.price({ item: 'tea' })");
  assert.deepEqual(report.value, { total: 6 }, JSON.stringify(report));
  const refused = await airlock.run("return await shop.price({ item: 'stone' })");
  assert.match(refused.error.message, /item: not sold here/);
  await airlock.close();
}

await check(inputSchema);
await check(older(inputSchema), { zod: z });
await assert.rejects(check(older(inputSchema)), (error) => {
  assert.ok(error instanceof AirlockError);
  assert.match(error.message, /`shop\.price`[^]*pass `zod`/);
  return error.code === "invalid-tool";
});
