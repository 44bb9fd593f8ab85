// A client of airlock: starts `airlock serve` or connects to one, offers functions of the host as
// tools of scripts, runs scripts, and gives the tools to agent frameworks.

import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { ADAPTERS } from "./adapters.mjs";
import { decide } from "./approvals.mjs";
import { Connection } from "./connection.mjs";
import { AirlockError } from "./errors.mjs";
import { HostTools, TOKEN_VARIABLE } from "./host-tools.mjs";
import { HttpTransport } from "./http.mjs";
import { findProgram } from "./program.mjs";
import { StdioTransport, closed } from "./stdio.mjs";

export { AirlockError };

const PROTOCOL_VERSION = "2025-11-25";
const CLIENT = { name: "@CLIENT@", version: "@VERSION@" };
const PAGE_BYTES = 1_000_000;
const READ_FIRST = "TOOL_DESCRIPTION_REQUIRED";
const REPORT = "dev.airlock/report";

export class Airlock {
  #connection;
  #transport;
  #hostTools;
  #closing;
  #tools = [];
  /** What airlock tells models about its tools. */
  instructions = "";

  /** Starts airlock and waits until it answers. */
  static async start(options = {}) {
    checkOptions(options);
    const airlock = new Airlock();
    try {
      await airlock.#start(options);
    } catch (error) {
      await airlock.close();
      throw error;
    }
    return airlock;
  }

  async #start({ url, token, tools, zod, onApproval, ...options }) {
    let folder;
    try {
      if (url !== undefined) {
        this.#transport = new HttpTransport(url, token);
      } else {
        if (tools) {
          this.#hostTools = new HostTools(tools, zod);
          await this.#hostTools.listen();
          folder = await mkdtemp(join(tmpdir(), "airlock-client-"));
        }
        this.#transport = await startProgram(options, this.#hostTools, folder);
      }
      const asks = { "elicitation/create": (params, signal) => decide(onApproval, params, signal) };
      this.#connection = new Connection(this.#transport, onApproval ? asks : {});
      // Without airlock, no call can come. An open socket would keep the process alive.
      const { onend } = this.#transport;
      this.#transport.onend = (error) => {
        onend(error);
        this.#hostTools?.close();
      };
      const greeting = await this.#connection.request("initialize", {
        protocolVersion: PROTOCOL_VERSION,
        capabilities: onApproval ? { elicitation: { form: {} } } : {},
        clientInfo: CLIENT,
      });
      this.instructions = greeting.instructions ?? "";
    } finally {
      // Airlock has read its configuration by now.
      if (folder) await rm(folder, { recursive: true, force: true });
    }
    this.#connection.notify("notifications/initialized");
    this.#tools = await this.#listTools();
  }

  async #listTools() {
    const tools = [];
    let cursor;
    do {
      const page = await this.#connection.request("tools/list", cursor ? { cursor } : {});
      tools.push(...page.tools);
      cursor = page.nextCursor;
    } while (cursor);
    return tools;
  }

  /** Returns the tools in the form of a framework. */
  tools(framework, functions) {
    const adapter = Object.hasOwn(ADAPTERS, framework) ? ADAPTERS[framework] : undefined;
    if (!adapter) {
      throw new AirlockError("unknown-framework", {
        what: `there are no tools for \`${framework}\``,
        why: "`tools` does not know this name",
        next: `use one of ${Object.keys(ADAPTERS).join(", ")}`,
      });
    }
    const handle = {
      tools: this.#tools,
      callTool: (params, options) => this.#request("tools/call", params, options),
      request: (method, params, options) => this.#request(method, params, options),
    };
    return adapter(handle, functions);
  }

  /** Runs a script and returns its report, also if the script failed. */
  async run(code, { input, timeoutMs, tools = [], resume, ...options } = {}) {
    const args = { code, input, timeout_ms: timeoutMs, resume };
    if (tools.length > 0) await this.#readDescriptions(tools, options);
    const call = { name: "run_script", arguments: args };
    let result = await this.#request("tools/call", call, options);
    const unread = unreadTools(result);
    if (unread.length > 0) {
      // Nothing has run yet. A person wrote this script, so that no model needs to read first.
      await this.#readDescriptions(unread, options);
      result = await this.#request("tools/call", call, options);
    }
    return this.#report(result, options);
  }

  /** Waits for a run that was paused or interrupted, and returns its report. */
  async resume(run, options) {
    const call = { name: "resume_run", arguments: { run } };
    return this.#report(await this.#request("tools/call", call, options), options);
  }

  /** Ends airlock, all runs, and the server of the host's functions. */
  close() {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close() {
    this.#connection?.end(closed());
    await this.#transport?.close();
    this.#hostTools?.close();
  }

  [Symbol.asyncDispose]() {
    return this.close();
  }

  #request(method, params, options) {
    if (this.#closing) return Promise.reject(closed());
    return this.#connection.request(method, params, options);
  }

  async #readDescriptions(tools, { signal }) {
    const call = { name: "get_tool_details", arguments: { tools } };
    await this.#request("tools/call", call, { signal });
  }

  async #report(result, { signal } = {}) {
    const report = result._meta?.[REPORT] ?? result.structuredContent;
    if (report?.run === undefined) throw refused(result);
    if (report.value_at) {
      const { uri, format } = report.value_at;
      const text = await this.#readText(uri, signal);
      report.value = format === "json" ? JSON.parse(text) : text;
      delete report.value_at;
    }
    return report;
  }

  async #readText(uri, signal) {
    const parts = [];
    let from = 0;
    while (from !== undefined) {
      const page = { uri: `${uri}?from=${from}&length=${PAGE_BYTES}` };
      const { contents } = await this.#request("resources/read", page, { signal });
      parts.push(contents[0].text);
      from = contents[0]._meta?.["dev.airlock/page"]?.next;
    }
    return parts.join("");
  }
}

async function startProgram(options, hostTools, folder) {
  const { config, args = [], command = findProgram(), cwd, onStderr = printStderr } = options;
  const words = ["serve", "--quiet"];
  if (config !== undefined) words.push("--config", config);
  const env = { ...(options.env ?? process.env) };
  if (hostTools) {
    const file = join(folder, "mcp.json");
    await writeFile(file, JSON.stringify(hostTools.configuration()), { mode: 0o600 });
    words.push("--mcp-config", file);
    env[TOKEN_VARIABLE] = hostTools.token;
  }
  return new StdioTransport(command, [...words, ...args], { env, cwd, onStderr });
}

function printStderr(text) {
  process.stderr.write(text);
}

const WITH_PROGRAM = ["config", "tools", "args", "command", "env", "cwd", "onStderr", "zod"];

function checkOptions(options) {
  const excess = WITH_PROGRAM.filter((name) => options[name] !== undefined);
  if (options.url === undefined || excess.length === 0) return;
  throw new AirlockError("invalid-options", {
    what: `\`url\` and \`${excess[0]}\` cannot be used together`,
    why: "an airlock that runs already has its configuration, and cannot reach functions of this process",
    next: `remove \`url\`, and airlock is started here; or remove \`${excess[0]}\``,
  });
}

/** Returns the tools whose descriptions have to be read before the script can run. */
function unreadTools({ structuredContent }) {
  const error = structuredContent?.error;
  if (structuredContent?.run !== undefined || error?.code !== READ_FIRST) return [];
  return new URL(error.resource_uri).searchParams.get("tools").split(",");
}

/** Returns the error for a result without a report. */
function refused({ structuredContent, content = [] }) {
  const error = structuredContent?.error;
  return new AirlockError(error?.code ?? "no-report", {
    what: "airlock did not run the script",
    why: error?.message ?? content.map((it) => it.text).join("\n"),
    next: error?.next ?? "correct the request",
  });
}
