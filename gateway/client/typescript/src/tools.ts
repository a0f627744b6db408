/** Operations as tools for a model: name, description and JSON Schema, and a method that runs the operation. */

import type { Connectors } from "./connectors.js";
import { GatewayError } from "./errors.js";
import type { Waiting } from "./jobs.js";
import type { Params } from "./numbered_pages.js";
import type { components } from "./schema.js";
import type { Session } from "./session.js";

/** Maximum bytes of a file in a tool's result; the param `range_header` selects other bytes. */
export const MAX_FILE_BYTES = 64 * 1024;

/** Which operations become tools. */
export interface ToolFilter extends Waiting {
  /** A kind or an application. */
  kind?: string;
  /** `read`: only operations that change nothing. */
  effect?: "read" | "idempotent" | "write";
  /** The connector on which the tools run: its id, its name, or a kind with one connector; by default the only one of the tool's kind. */
  connector?: string;
  /** Operations as `kind.entity.action`. */
  operations?: readonly string[];
}

/** One operation as a tool for a model. */
export interface Tool {
  name: string;
  /** `kind.entity.action`. */
  operation: string;
  title: string;
  description: string;
  /** JSON Schema of the arguments. */
  schema: Params;
  /** `read` changes nothing; a host may want to ask its user before `idempotent` and `write`. */
  effect: "read" | "idempotent" | "write";
  /** Run the operation and return its result; for a file `{content, encoding, bytes, complete}`. Raises GatewayError. */
  call(args: Params, options?: Waiting): Promise<unknown>;
}

/** The definition of a tool in the format of the Model Context Protocol. */
interface McpTool {
  name: string;
  title: string;
  description: string;
  inputSchema: Params;
  annotations: { readOnlyHint: boolean; idempotentHint: boolean };
}

/** @internal */
export async function toolsOf(session: Session, connectors: Connectors, filter: ToolFilter): Promise<Tool[]> {
  const { kind, effect, connector, operations, signal } = filter;
  const bound = connector === undefined ? undefined : (await connectors.find(connector)).id;
  const query = { format: "mcp", kind, effect, connector_id: bound, operations: operations?.join(",") };
  const found = await session.json<components["schemas"]["Tools"]>({
    method: "GET",
    path: "/api/v1/tools",
    query,
    signal,
  });
  return (found.data as unknown as McpTool[]).map((each) =>
    toolOf(each, found.operations[each.name]!, connectors, bound),
  );
}

function toolOf(definition: McpTool, operation: string, connectors: Connectors, bound: string | undefined): Tool {
  const { name, title, description, inputSchema, annotations } = definition;
  const [kind, entity, action] = operation.split(".") as [string, string, string];
  return {
    ...{ name, operation, title, description, schema: inputSchema },
    effect: annotations.readOnlyHint ? "read" : annotations.idempotentHint ? "idempotent" : "write",
    async call(args, { signal } = {}) {
      const found = await connectors.find(bound ?? kind);
      if (action !== "download") return (await found.execute(entity, action, args, { signal })).result;
      const { range_header, ...params } = args;
      return await shown(await found.download(entity, params, { range: range_header as string | undefined, signal }));
    },
  };
}

/** The first `MAX_FILE_BYTES` of a file: as text, without a last character that is incomplete, or as base64. */
async function shown(file: AsyncIterable<Uint8Array>): Promise<unknown> {
  let content = Buffer.alloc(0);
  for await (const chunk of file) {
    content = Buffer.concat([content, chunk]);
    if (content.length > MAX_FILE_BYTES) break;
  }
  const complete = content.length <= MAX_FILE_BYTES;
  content = content.subarray(0, MAX_FILE_BYTES);
  try {
    const text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(content, { stream: !complete });
    return { content: text, encoding: "utf-8", bytes: Buffer.byteLength(text), complete };
  } catch {
    return { content: content.toString("base64"), encoding: "base64", bytes: content.length, complete };
  }
}

/** @internal The error as a sentence for a model. */
export function forModel(error: unknown): unknown {
  return error instanceof GatewayError ? new Error(`${error.code}: ${error.detail}`, { cause: error }) : error;
}
