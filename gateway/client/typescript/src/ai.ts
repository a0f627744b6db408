/**
 * The gateway's tools for the Vercel AI SDK; needs the package `ai`.
 *
 * @example
 * const tools = aiTools(await gateway.tools({ kind: "support-desk" }));
 * const { text } = await generateText({ model, tools, prompt, stopWhen: stepCountIs(5) });
 */

import { jsonSchema, tool, type ToolSet } from "ai";
import { forModel, type Tool } from "./tools.js";

/** A tool of the AI SDK for each tool. An error of a call is returned to the model. */
export function aiTools(tools: Iterable<Tool>): ToolSet {
  return Object.fromEntries([...tools].map((each) => [each.name, aiTool(each)]));
}

function aiTool({ title, description, schema, call }: Tool): ToolSet[string] {
  return tool({
    title,
    description,
    inputSchema: jsonSchema<Record<string, unknown>>(schema),
    execute: async (args, { abortSignal }) => {
      try {
        return await call(args, { signal: abortSignal });
      } catch (error) {
        throw forModel(error);
      }
    },
  });
}
