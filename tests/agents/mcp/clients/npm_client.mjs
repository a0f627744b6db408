// What the npm client makes of a server: node npm_client.mjs URL AUTHORIZATION CONNECTOR MODE, run where it is installed.
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const [url, authorization, connector, mode] = process.argv.slice(2);
const { resolve } = createRequire(`${process.cwd()}/`);
const { Client, StreamableHTTPClientTransport } = await import(
  pathToFileURL(resolve("@modelcontextprotocol/client")).href
);

const client = new Client({ name: "npm", version: "1" }, { versionNegotiation: { mode } });
const headers = { Authorization: authorization };
await client.connect(new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers } }));
const { tools } = await client.listTools();
const read = { operation: "support-desk.tickets.list", connector };
const reads = [];
for (let turn = 0; turn < 6; turn++) {
  reads.push((await client.callTool({ name: "read", arguments: read })).structuredContent.result.length);
}
const params = { ids: "1,2", ticket: { status: "solved" } };
const operation = "support-desk.ticket_bulk_updates.create";
const written = await client.callTool({ name: "write", arguments: { operation, connector, params } });
const wrong = await client.callTool({ name: "read", arguments: { ...read, operation: "support-desk.tickets.lst" } });
await client.close();
console.log(
  JSON.stringify({
    tools: tools.map((tool) => tool.name),
    reads,
    succeeded: written.structuredContent.result.succeeded,
    isError: wrong.isError,
  }),
);
