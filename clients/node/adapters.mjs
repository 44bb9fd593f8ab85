// The tools of airlock in the forms that agent frameworks expect. No framework is imported.
//
// A model gets the text of each result.

import { AirlockError } from "./errors.mjs";

/** The mark by which the AI SDK knows a JSON Schema. */
const AI_SDK_SCHEMA = Symbol.for("vercel.ai.schema");

/** Each adapter gets the handle, and what the host passed for the framework. */
export const ADAPTERS = {
  mcp: (handle) => handle,

  "ai-sdk": (handle) =>
    Object.fromEntries(
      handle.tools.map(({ name, description, inputSchema }) => [
        name,
        {
          description,
          inputSchema: { [AI_SDK_SCHEMA]: true, jsonSchema: inputSchema, validate: undefined },
          execute: (input, { abortSignal } = {}) => text(handle, name, input, abortSignal),
        },
      ]),
    ),

  openai: (handle) => ({
    chat: handle.tools.map(({ name, description, inputSchema }) => ({
      type: "function",
      function: { name, description, parameters: inputSchema },
    })),
    responses: handle.tools.map(({ name, description, inputSchema }) => ({
      type: "function",
      name,
      description,
      parameters: inputSchema,
      strict: false,
    })),
    call: async (call, { signal } = {}) => {
      if (call.type === "function_call") {
        const output = await dispatched(handle, call.name, call.arguments, signal);
        return { type: "function_call_output", call_id: call.call_id, output: output.text };
      }
      const { name, arguments: args } = call.function;
      const { text: content } = await dispatched(handle, name, args, signal);
      return { role: "tool", tool_call_id: call.id, content };
    },
  }),

  "openai-agents": (handle, framework) => {
    const tool = needed(framework, "openai-agents", "@openai/agents");
    return handle.tools.map(({ name, description, inputSchema }) =>
      tool({
        name,
        description,
        parameters: inputSchema,
        strict: false,
        execute: (input, _context, details) => text(handle, name, input, details?.signal),
      }),
    );
  },

  anthropic: (handle) => ({
    tools: handle.tools.map(({ name, description, inputSchema }) => ({
      name,
      description,
      input_schema: inputSchema,
    })),
    call: async ({ id, name, input }, { signal } = {}) => {
      const { text: content, isError } = await dispatched(handle, name, input, signal);
      return { type: "tool_result", tool_use_id: id, content, is_error: isError };
    },
  }),

  langchain: (handle, framework) => {
    const tool = needed(framework, "langchain", "@langchain/core/tools");
    return handle.tools.map(({ name, description, inputSchema }) =>
      tool((input, config) => text(handle, name, input, config?.signal), {
        name,
        description,
        schema: inputSchema,
      }),
    );
  },
};

function needed(framework, name, module) {
  if (typeof framework?.tool === "function") return framework.tool;
  throw new AirlockError("missing-function", {
    what: `the tools for ${name} cannot be made`,
    why: `\`tools("${name}")\` needs the function \`tool\` of ${module}`,
    next: `import { tool } from "${module}", and call tools("${name}", { tool })`,
  });
}

async function text(handle, name, args, signal) {
  return textOf(await handle.callTool({ name, arguments: args }, { signal }));
}

function textOf({ content = [] }) {
  const texts = content.filter((it) => it.type === "text");
  return texts.map((it) => it.text).join("\n");
}

/** Calls the tool that a model named, which may not exist, with arguments that may not be JSON. */
async function dispatched(handle, name, args, signal) {
  try {
    const parsed = typeof args === "string" ? JSON.parse(args || "{}") : args;
    const result = await handle.callTool({ name, arguments: parsed }, { signal });
    return { text: textOf(result), isError: result.isError === true };
  } catch (error) {
    const isByModel = error instanceof SyntaxError || error.code === "request-failed";
    if (!isByModel) throw error;
    return { text: error.message, isError: true };
  }
}
