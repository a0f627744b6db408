// A calculator with sessions, by version 1 of the official SDK: `node npm_first_server.mjs PORT`
import { randomUUID } from "node:crypto";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const require = createRequire(`${process.cwd()}/`);
const load = (name) => import(pathToFileURL(require.resolve(name)));
const { McpServer } = await load("@modelcontextprotocol/sdk/server/mcp.js");
const { StreamableHTTPServerTransport } = await load("@modelcontextprotocol/sdk/server/streamableHttp.js");
const express = (await load("express")).default;
const { z } = await load("zod");

function calculator() {
  const server = new McpServer({ name: "calculator", version: "1" });
  const numbers = { a: z.number().int(), b: z.number().int() };
  server.registerTool("add", { description: "Adds two numbers.", inputSchema: numbers }, async ({ a, b }) => ({
    content: [{ type: "text", text: String(a + b) }],
  }));
  server.registerTool("divide", { inputSchema: numbers }, async ({ a, b }) => {
    if (b === 0) throw new Error("a number cannot be divided by zero");
    return { content: [{ type: "text", text: String(a / b) }] };
  });
  return server;
}

const transports = new Map();
const app = express();
app.use(express.json());
app.post("/mcp", async (request, response) => {
  let transport = transports.get(request.headers["mcp-session-id"]);
  if (transport === undefined) {
    if (request.body.method !== "initialize") {
      response.status(400).json({ jsonrpc: "2.0", id: null, error: { code: -32000, message: "no session" } });
      return;
    }
    transport = new StreamableHTTPServerTransport({
      sessionIdGenerator: randomUUID,
      onsessioninitialized: (id) => transports.set(id, transport),
    });
    await calculator().connect(transport);
  }
  await transport.handleRequest(request, response, request.body);
});
app.listen(Number(process.argv[2]), "127.0.0.1");
