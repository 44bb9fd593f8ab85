/** A JSON Schema, or a schema of zod 4 or of another library with Standard Schema. */
export type Schema = Record<string, unknown> | { readonly "~standard": object };

/** What a function of the host gets beside its arguments. */
export interface CallContext {
  /** Aborted when nobody waits for the result any more. */
  signal: AbortSignal;
  /** Reports progress to the caller of the script. */
  progress(message: string, amount?: { progress?: number; total?: number }): void;
}

export type HostFunction = (args: any, context: CallContext) => unknown;

/** A function of the host that scripts can call. */
export interface HostTool {
  description?: string;
  inputSchema?: Schema;
  outputSchema?: Schema;
  annotations?: {
    title?: string;
    readOnlyHint?: boolean;
    destructiveHint?: boolean;
    idempotentHint?: boolean;
    openWorldHint?: boolean;
  };
  execute: HostFunction;
}

/** A call that needs an answer of a person. */
export interface Question {
  /** What airlock shows a person: the tool, the reason and the arguments. */
  message: string;
  choices: { decision: Decision; text: string }[];
  /** Aborted when airlock no longer needs the answer. */
  signal: AbortSignal;
}

export type Decision =
  | "allow"
  | "allow-declassified"
  | "allow-tool"
  | "allow-session"
  | "refuse"
  | "happened"
  | "did-not-happen";

/** The answer to one question. Without a decision, the call is refused. */
export type Approval =
  | Decision
  | {
      decision: Decision;
      /** For `allow-tool` and `allow-session`: the number of calls in all, with this one. */
      uses?: number;
      /** For `happened`: the result of the call, as JSON text. */
      result?: string;
    }
  | undefined
  | null
  | void;

interface CommonOptions {
  /** Answers airlock's questions. Without it, airlock asks nobody here. */
  onApproval?(question: Question): Approval | Promise<Approval>;
}

/** Starts `airlock serve` as a process of its own. */
export interface ProgramOptions extends CommonOptions {
  url?: undefined;
  token?: undefined;
  /** The path of an `airlock.toml`. */
  config?: string;
  /** Functions of this process, by server and name: `{ shop: { price } }` is `shop.price`. */
  tools?: Record<string, Record<string, HostFunction | HostTool>>;
  /** The module `zod`, if its schemas do not implement Standard JSON Schema (before 4.2). */
  zod?: { toJSONSchema(schema: any, options?: any): any };
  /** Further arguments of `airlock serve`. */
  args?: string[];
  /** The program. The default is the installed package, or else `airlock` on PATH. */
  command?: string;
  env?: Record<string, string | undefined>;
  cwd?: string;
  /** Gets what airlock prints on stderr. The default prints it on the stderr of this process. */
  onStderr?(text: string): void;
}

/** Connects to an airlock that serves over HTTP. */
export interface UrlOptions extends CommonOptions {
  url: string | URL;
  /** The bearer token of the server. */
  token?: string;
}

export interface Progress {
  progress: number;
  total?: number;
  message?: string;
}

export interface RequestOptions {
  signal?: AbortSignal;
  onProgress?(progress: Progress): void;
}

export interface RunOptions extends RequestOptions {
  /** The script's global `input`. */
  input?: unknown;
  timeoutMs?: number;
  /** Tools that the script calls by a computed name, such as `shop.price`. */
  tools?: string[];
  /** The id of a run to resume: calls that happened are not made again. */
  resume?: string;
}

export interface ReportedCall {
  id: number;
  tool: string;
  decision: string;
  reasons: string[];
  outcome: string;
  code: string | null;
  ms: number;
}

export interface Report<Value = unknown> {
  run: string;
  status: "done" | "failed" | "stopped" | "paused" | (string & {});
  code: string | null;
  /** What the script returned. */
  value: Value;
  error: {
    name: string;
    message: string;
    code: string;
    line: number | null;
    column: number | null;
    stack: string;
  } | null;
  findings: {
    severity: string;
    code: string;
    line: number;
    column: number;
    message: string;
    suggestion: string | null;
  }[];
  console: { level: string; text: string }[];
  console_dropped_bytes: number;
  calls: ReportedCall[];
  usage: {
    wall_ms: number;
    guest_ms: number;
    memory_bytes_peak: number;
    calls: number;
    output_bytes: number;
    calls_not_recorded: number;
  };
  /** What to do next, if the run is not done. */
  next?: string;
  [more: string]: unknown;
}

export interface McpTool {
  name: string;
  title?: string;
  description?: string;
  inputSchema: any;
  annotations?: Record<string, unknown>;
}

export interface CallToolResult {
  content?: ({ type: string } & Record<string, any>)[];
  structuredContent?: any;
  isError?: boolean;
  _meta?: Record<string, unknown>;
}

/** MCP as it is. */
export interface McpHandle {
  tools: McpTool[];
  callTool(
    params: { name: string; arguments?: Record<string, unknown> },
    options?: RequestOptions,
  ): Promise<CallToolResult>;
  request(method: string, params?: object, options?: RequestOptions): Promise<any>;
}

/** Tools for both interfaces of OpenAI, and the function that answers a call of the model. */
export interface OpenAiTools {
  chat: { type: "function"; function: { name: string; description?: string; parameters: any } }[];
  responses: {
    type: "function";
    name: string;
    description?: string;
    parameters: any;
    strict: false;
  }[];
  call(
    call: { type: "function_call"; call_id: string; name: string; arguments: string },
    options?: { signal?: AbortSignal },
  ): Promise<{ type: "function_call_output"; call_id: string; output: string }>;
  call(
    call: { id: string; type?: "function"; function: { name: string; arguments: string } },
    options?: { signal?: AbortSignal },
  ): Promise<{ role: "tool"; tool_call_id: string; content: string }>;
}

export interface AnthropicTools {
  tools: { name: string; description?: string; input_schema: any }[];
  call(
    toolUse: { id: string; name: string; input: unknown },
    options?: { signal?: AbortSignal },
  ): Promise<{ type: "tool_result"; tool_use_id: string; content: string; is_error: boolean }>;
}

export class Airlock {
  private constructor();
  static start(options?: ProgramOptions | UrlOptions): Promise<Airlock>;
  /** What airlock tells models about its tools, for a system prompt. */
  readonly instructions: string;
  tools(framework: "mcp"): McpHandle;
  tools(framework: "ai-sdk"): Record<string, any>;
  tools(framework: "openai"): OpenAiTools;
  tools(framework: "anthropic"): AnthropicTools;
  /** `tool` comes from `@openai/agents` or `@langchain/core/tools`. */
  tools<Tool>(
    framework: "openai-agents" | "langchain",
    functions: { tool: (...args: any[]) => Tool },
  ): Tool[];
  /** Runs a script. The report also comes if the script failed. */
  run<Value = unknown>(code: string, options?: RunOptions): Promise<Report<Value>>;
  /** Waits for a run that was paused or interrupted. */
  resume<Value = unknown>(run: string, options?: RequestOptions): Promise<Report<Value>>;
  /** Ends airlock and everything that belongs to it. */
  close(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

/** An error of the client, or of an airlock that cannot be reached. */
export class AirlockError extends Error {
  /** A stable word, such as `airlock-ended`. */
  readonly code: string;
}
