// JSON Schemas and checks of the arguments of the host's functions.

import { AirlockError } from "./errors.mjs";

const DIALECT = { target: "draft-2020-12" };

/** Returns a JSON Schema for one that is JSON already, or that zod or a like library made.
 * `direction` is `input` or `output`. */
export function toJsonSchema(schema, direction, tool, zod) {
  const standard = schema["~standard"];
  if (!standard) return schema;
  if (standard.jsonSchema) return standard.jsonSchema[direction](DIALECT);
  if (zod?.toJSONSchema) return zod.toJSONSchema(schema, { io: direction });
  throw new AirlockError("invalid-tool", {
    what: `the ${direction} schema of the function \`${tool}\` cannot be used`,
    why: `this version of ${standard.vendor} does not say how to turn it into a JSON Schema`,
    next: "pass `zod` (version 4) to `Airlock.start`, or write the schema as JSON",
  });
}

/** Returns the arguments as the schema of zod or a like library changes them, such as with
 * defaults. airlock itself has checked them against the JSON Schema. */
export async function parseArguments(schema, args) {
  const standard = schema?.["~standard"];
  if (!standard) return args;
  const parsed = await standard.validate(args);
  if (!parsed.issues) return parsed.value;
  const issue = ({ path = [], message }) => {
    const names = path.map((step) => String(step?.key ?? step));
    return names.length > 0 ? `${names.join(".")}: ${message}` : message;
  };
  throw new Error(`invalid arguments: ${parsed.issues.map(issue).join("; ")}`);
}
