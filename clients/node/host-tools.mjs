// Serves functions of the host to airlock: an MCP server over streamable HTTP on loopback.
//
// Each group of functions is a server at a path of its own. Only requests with the token are
// answered.

import { randomBytes, randomUUID, timingSafeEqual } from "node:crypto";
import http from "node:http";

import { parseArguments, toJsonSchema } from "./schema.mjs";

/** Airlock's limit for the arguments of a call is 4 MiB by default. */
const BODY_BYTES_MAX = 64 * 1024 * 1024;
const VERSIONS = ["2025-11-25", "2025-06-18"];
const METHOD_NOT_FOUND = -32601;
const INVALID_PARAMS = -32602;
const SESSION = "mcp-session-id";
/** The variable of airlock's environment with the token. */
export const TOKEN_VARIABLE = "AIRLOCK_CLIENT_TOKEN";

export class HostTools {
  token = randomBytes(32).toString("base64url");
  #servers = new Map();
  #listener;
  /** The calls in progress, by session and id. */
  #calls = new Map();

  constructor(servers, zod) {
    for (const [server, functions] of Object.entries(servers)) {
      const tools = Object.entries(functions).map(([name, it]) => tool(server, name, it, zod));
      this.#servers.set(`/${server}`, new Map(tools.map((it) => [it.listed.name, it])));
    }
  }

  async listen() {
    this.#listener = http.createServer((request, response) => {
      this.#serve(request, response).catch(() => response.destroy());
    });
    await new Promise((resolve, reject) => {
      this.#listener.once("error", reject).listen(0, "127.0.0.1", resolve);
    });
  }

  /** Returns the configuration by which airlock finds the servers. The token is not in it. */
  configuration() {
    const { port } = this.#listener.address();
    const headers = { Authorization: `Bearer \${env:${TOKEN_VARIABLE}}` };
    const entry = (path) => [path.slice(1), { url: `http://127.0.0.1:${port}${path}`, headers }];
    return { mcpServers: Object.fromEntries([...this.#servers.keys()].map(entry)) };
  }

  close() {
    for (const call of this.#calls.values()) call.abort(new Error("the client was closed"));
    this.#listener.close();
    this.#listener.closeAllConnections();
  }

  async #serve(request, response) {
    const tools = this.#servers.get(request.url);
    if (!this.#hasToken(request)) return end(response, 401);
    // A web page sends its origin. Airlock sends none.
    if (request.headers.origin !== undefined) return end(response, 403);
    if (!tools) return end(response, 404);
    if (request.method === "DELETE") return end(response, 200);
    if (request.method !== "POST") return end(response, 405);
    const body = await read(request);
    if (body === undefined) return end(response, 413);
    let message;
    try {
      message = JSON.parse(body);
    } catch {
      return end(response, 400);
    }
    const session = request.headers[SESSION] ?? "";
    if (message.id === undefined || message.method === undefined) {
      if (message.method === "notifications/cancelled") {
        this.#calls.get(`${session} ${message.params?.requestId}`)?.abort(new Error("cancelled"));
      }
      return end(response, 202);
    }
    if (message.method === "initialize") response.setHeader(SESSION, randomUUID());
    if (message.method !== "tools/call") {
      return answer(response, message.id, simple(message, tools));
    }
    await this.#call(message, tools, `${session} ${message.id}`, response);
  }

  #hasToken(request) {
    const expected = Buffer.from(`Bearer ${this.token}`);
    const given = Buffer.from(request.headers.authorization ?? "");
    return given.length === expected.length && timingSafeEqual(given, expected);
  }

  async #call({ id, params }, tools, key, response) {
    const called = tools.get(params?.name);
    if (!called) {
      const message = `unknown tool ${params?.name}`;
      return answer(response, id, { error: { code: INVALID_PARAMS, message } });
    }
    const controller = new AbortController();
    this.#calls.set(key, controller);
    // No later connection can fetch the result, so a call without a reader has no use.
    response.on("close", () => controller.abort(new Error("airlock closed the connection")));
    const token = params._meta?.progressToken;
    if (token !== undefined) {
      response.writeHead(200, { "content-type": "text/event-stream" }).flushHeaders();
    }
    let count = 0;
    const progress = (message, { progress = ++count, total } = {}) => {
      if (token === undefined || response.writableEnded) return;
      const params = { progressToken: token, progress, total, message };
      event(response, { jsonrpc: "2.0", method: "notifications/progress", params });
    };
    const result = await perform(called, params.arguments ?? {}, {
      signal: controller.signal,
      progress,
    });
    this.#calls.delete(key);
    answer(response, id, { result });
  }
}

/** Returns a function as a tool: what the list shows, and what is called. */
function tool(server, name, given, zod) {
  const { execute, description, inputSchema, outputSchema, annotations } =
    typeof given === "function" ? { execute: given } : given;
  const title = `${server}.${name}`;
  if (typeof execute !== "function") throw new TypeError(`\`${title}\` has no function \`execute\``);
  const output = outputSchema ? toJsonSchema(outputSchema, "output", title, zod) : {};
  const { $defs, ...result } = output;
  const listed = {
    name,
    description: description ?? "",
    inputSchema: inputSchema ? toJsonSchema(inputSchema, "input", title, zod) : { type: "object" },
    // Structured content is an object. Airlock gives scripts the value of its only member `result`.
    outputSchema: { type: "object", properties: { result }, required: ["result"], $defs },
    annotations,
  };
  return { listed, execute, inputSchema };
}

async function perform({ execute, inputSchema }, args, context) {
  try {
    const value = await execute(await parseArguments(inputSchema, args), context);
    return { content: [], structuredContent: { result: toJson(value) } };
  } catch (error) {
    const text = String(error?.message ?? error);
    return { content: [{ type: "text", text }], isError: true };
  }
}

/** Returns a value that JSON can hold. */
function toJson(value) {
  try {
    const text = JSON.stringify(value);
    return text === undefined ? null : JSON.parse(text);
  } catch (error) {
    throw new Error(`the function's result cannot be written as JSON: ${error.message}`);
  }
}

/** Answers a request that needs no function. */
function simple({ method, params }, tools) {
  switch (method) {
    case "initialize": {
      const wanted = params?.protocolVersion;
      const protocolVersion = VERSIONS.includes(wanted) ? wanted : VERSIONS[0];
      const serverInfo = { name: "functions of the host", version: "1" };
      return { result: { protocolVersion, capabilities: { tools: {} }, serverInfo } };
    }
    case "ping":
      return { result: {} };
    case "tools/list":
      return { result: { tools: [...tools.values()].map((it) => it.listed) } };
    default:
      return { error: { code: METHOD_NOT_FOUND, message: `unknown method ${method}` } };
  }
}

function answer(response, id, outcome) {
  const message = { jsonrpc: "2.0", id, ...outcome };
  if (response.headersSent) {
    event(response, message);
    return response.end();
  }
  response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(message));
}

function event(response, message) {
  response.write(`data: ${JSON.stringify(message)}\n\n`);
}

function end(response, status) {
  response.writeHead(status).end();
}

/** Reads the body of a request. Returns nothing if it is too long. */
async function read(request) {
  const parts = [];
  let bytes = 0;
  for await (const part of request) {
    bytes += part.length;
    if (bytes > BODY_BYTES_MAX) return undefined;
    parts.push(part);
  }
  return Buffer.concat(parts).toString("utf8");
}
