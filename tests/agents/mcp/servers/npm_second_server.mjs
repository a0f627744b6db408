// A calculator by version 2 of the official SDK: `node npm_second_server.mjs PORT`
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { Readable } from "node:stream";
import { pathToFileURL } from "node:url";

const require = createRequire(`${process.cwd()}/`);
const load = (name) => import(pathToFileURL(require.resolve(name)));
const { McpServer, createMcpHandler } = await load("@modelcontextprotocol/server");
const { z } = await load("zod");

function calculator() {
  const server = new McpServer({ name: "calculator", version: "2" });
  const inputSchema = z.object({ a: z.number().int(), b: z.number().int() });
  server.registerTool("add", { description: "Adds two numbers.", inputSchema }, async ({ a, b }) => ({
    content: [{ type: "text", text: String(a + b) }],
  }));
  server.registerTool("divide", { inputSchema }, async ({ a, b }) => {
    if (b === 0) throw new Error("a number cannot be divided by zero");
    return { content: [{ type: "text", text: String(a / b) }] };
  });
  return server;
}

const handler = createMcpHandler(calculator);
createServer(async (incoming, outgoing) => {
  const request = new Request(`http://127.0.0.1${incoming.url}`, {
    method: incoming.method,
    headers: incoming.headers,
    body: incoming.method === "POST" ? Readable.toWeb(incoming) : undefined,
    duplex: "half",
  });
  const response = await handler.fetch(request);
  outgoing.writeHead(response.status, Object.fromEntries(response.headers));
  if (response.body) Readable.fromWeb(response.body).pipe(outgoing);
  else outgoing.end();
}).listen(Number(process.argv[2]), "127.0.0.1");
