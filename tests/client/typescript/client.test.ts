/** The package with a running gateway and the sandbox; a relay between them has the faults. */

import assert from "node:assert/strict";
import { createHash, randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { after, before, describe, test } from "node:test";
import { generateText, stepCountIs } from "ai";
import { MockLanguageModelV3 } from "ai/test";
import { Gateway, GatewayError, type Answer, type Connector, type GatewayEvent } from "agent-connector-gateway";
import { aiTools } from "agent-connector-gateway/ai";
import { Relay } from "./relay.ts";

const { GATEWAY_URL = "", SANDBOX_URL = "" } = process.env;
const workspace = `typescript-${randomUUID().slice(0, 8)}`;
const relay = new Relay(GATEWAY_URL);
let url: string;
let gateway: Gateway;
let desk: Connector;

const unavailable = { status: 503, headers: { "Retry-After": "0", "Content-Type": "application/problem+json" } };
const PROBLEM = JSON.stringify({ code: "unavailable", detail: "starting", status: 503 });

async function all<T>(items: AsyncIterable<T>): Promise<T[]> {
  const found: T[] = [];
  for await (const item of items) found.push(item);
  return found;
}

/** The writes that the application has received. */
async function posts(path: string): Promise<number> {
  const { requests } = await (await fetch(`${SANDBOX_URL}/_sandbox/requests`)).json();
  return requests.filter((each: { method: string; path: string }) => each.method === "POST" && each.path.includes(path))
    .length;
}

async function refusal(call: Promise<unknown>): Promise<GatewayError> {
  const error = await call.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  assert.ok(error instanceof GatewayError, String(error));
  return error;
}

before(async () => {
  url = await relay.listen();
  gateway = new Gateway({ url, workspace, retries: { firstPause: 0.001 } });
  const credentials = { subdomain: "acme", email: "agent@acme.com", api_token: "t" };
  await gateway.connectors.create({ connector_type: "Support-Desk", name: "Help desk", credentials });
  desk = await gateway.connector("zendesk");
});

after(() => relay.close());

describe("a connector", () => {
  test("is found by its id, its name, its kind and its application, and by no other word", async () => {
    for (const name of [desk.id, "Help desk", "Support_Desk", "Zendesk"]) {
      assert.equal((await gateway.connector(name, { workspace })).id, desk.id);
    }
    const error = await refusal(gateway.connector("help", { workspace }));
    assert.deepEqual([error.code, error.message.includes("Help desk (Zendesk, support-desk")], ["not_found", true]);
  });

  test("is forgotten once the gateway has no such connector", async () => {
    const credentials = { bot_key: "t" };
    await gateway.connectors.create({ connector_type: "team-chat", credentials });
    const chat = await gateway.connector("team-chat");
    await gateway.request("DELETE", "/api/v1/integrations/connectors/{connector_id}", {
      path: { connector_id: chat.id },
    });
    assert.equal((await refusal(chat.execute("users", "list"))).code, "not_found");
    const again = await gateway.connectors.create({ connector_type: "team-chat", credentials });
    assert.equal((await gateway.connector("team-chat")).id, again.id);
  });
});

describe("execute", () => {
  test("returns records, and the params of the next page", async () => {
    const answer: Answer<{ id: number }[]> = await desk.execute("tickets", "list", { per_page: 2 }, { select: ["id"] });
    assert.deepEqual([answer.result.map(Object.keys), answer.next?.["page"]], [[["id"], ["id"]], 2]);
  });

  test("sends nothing in a dry run, and accepts an answer that is not older than maxAge", async () => {
    const from = relay.received.length;
    const { result } = await desk.execute("tickets", "create", { ticket: { subject: "No" } }, { dryRun: true });
    assert.equal(result[0].method, "POST");
    await desk.execute("tickets", "list", { per_page: 1 }, { maxAge: 60 });
    assert.deepEqual(
      relay.to("/execute", from).map(({ headers }) => headers["cache-control"]),
      [undefined, "max-age=60"],
    );
  });

  test("raises the problem with code, faults and request id", async () => {
    const error = await refusal(desk.execute("tickets", "list", { sort_order: "up", page: 0 }));
    assert.deepEqual(
      [error.code, error.status, error.errors.length, error.retryable],
      ["invalid_params", 422, 2, false],
    );
    assert.ok(error.requestId && error.message.includes("sort_order"));
    assert.equal(error.type, "urn:gateway:error:invalid_params");
  });

  test("repeats a read after a 503, and a write that may not be repeated only with its key", async () => {
    const from = relay.received.length;
    relay.faults.push({ path: "/execute", answer: { ...unavailable, body: PROBLEM } });
    assert.equal((await desk.execute("tickets", "list", { per_page: 1 })).result.length, 1);
    assert.equal(relay.to("/execute", from).length, 2);
    relay.faults.push({ path: "/sessions", answer: { ...unavailable, body: PROBLEM } });
    const options = { body: { person: { subject: "user-7" } } };
    assert.equal((await refusal(gateway.request("POST", "/api/v1/sessions", options))).code, "unavailable");
    assert.equal(relay.to("/sessions", from).length, 1);
  });

  test("writes once if the connection breaks before the answer", async () => {
    const [from, before] = [relay.received.length, await posts("/tickets.json")];
    relay.faults.push({ path: "/execute", cutAfter: -1 });
    const { result } = await desk.execute("tickets", "create", { ticket: { subject: "Once" } });
    const keys = relay.to("/execute", from).map(({ headers }) => headers["idempotency-key"]);
    assert.deepEqual([keys.length, keys[0] === keys[1], typeof result.id], [2, true, "number"]);
    assert.equal(await posts("/tickets.json"), before + 1);
  });

  test("renews a refused token once, for all calls that wait for it", async () => {
    const from = relay.received.length;
    const other = new Gateway({ url, workspace });
    await Promise.all([other.latestEvent(), other.latestEvent()]);
    relay.faults.push({ path: "/api/v1/events", answer: { status: 401 } });
    await other.latestEvent();
    assert.equal(relay.to("/applications/token", from).length, 2);
  });

  test("ends by the caller's signal, also while it pauses before another attempt or waits for a token", async () => {
    const error = { name: "TimeoutError" };
    const headers = { ...unavailable.headers, "Retry-After": "20" };
    relay.faults.push({ path: "/execute", answer: { ...unavailable, headers, body: PROBLEM } });
    await assert.rejects(desk.execute("tickets", "list", {}, { signal: AbortSignal.timeout(50) }), error);
    const silent = new Gateway({ url, fetch: () => new Promise(() => undefined) });
    const call = silent.request("GET", "/api/v1/jobs", { signal: AbortSignal.timeout(50) });
    await assert.rejects(call, error);
  });

  test("says that nothing was sent if the gateway is not there", async () => {
    const nowhere = new Gateway({ url: "http://127.0.0.1:9", retries: { retries: 1, firstPause: 0.001 } });
    const error = await refusal(nowhere.latestEvent());
    assert.deepEqual([error.code, error.sent, error.status], ["unavailable", false, undefined]);
  });

  test("keeps all digits of a long whole number", async () => {
    const body =
      '{"status": "success", "result": [{"id": 12345678901234567890, "text": "1 \\" 12345678901234567", "price": 0.1234567890123456}]}';
    relay.faults.push({
      path: "/execute",
      answer: { status: 200, headers: { "Content-Type": "application/json" }, body },
    });
    const { result } = await desk.execute("tickets", "list");
    assert.deepEqual(result, [
      { id: "12345678901234567890", text: '1 " 12345678901234567', price: 0.1234567890123456 },
    ]);
  });
});

describe("a job", () => {
  const update = { ids: Array.from({ length: 120 }, (_, index) => index + 1).join(","), ticket: { status: "pending" } };

  test("is followed to its end, with its progress, its events and its records", async () => {
    const job = await desk.submit("ticket_bulk_updates", "create", update, { labels: { from: "typescript" } });
    const seen: string[] = [];
    await job.wait({ onChange: ({ status }) => void seen.push(status) });
    relay.faults.push({ path: "/events", cutAfter: 10 });
    const events = await all(job.events());
    assert.deepEqual(
      [job.status, job.isDone, seen.at(-1), events.at(-1)?.name],
      ["succeeded", true, "succeeded", "done"],
    );
    const { result } = await job.result();
    assert.deepEqual([result.succeeded, result.results.length, (await all(job.records())).length], [120, 120, 120]);
    const found = (await all(gateway.jobs.list({ entity: "ticket_bulk_updates", limit: 5 }))).map(({ id }) => id);
    assert.ok(found.includes(job.id));
  });

  test("is canceled, and its result is an error with its id", async () => {
    const slow = { kind: "support-desk", entity: "tickets", latency_ms: 20_000, times: 1 };
    const headers = { "Content-Type": "application/json" };
    await fetch(`${SANDBOX_URL}/_sandbox/faults`, { method: "POST", headers, body: JSON.stringify(slow) });
    const job = await desk.submit("tickets", "list");
    await job.cancel();
    const error = await refusal(job.result());
    await fetch(`${SANDBOX_URL}/_sandbox/faults`, { method: "DELETE" });
    assert.deepEqual([error.code, error.jobId, job.status], ["job_canceled", job.id, "canceled"]);
  });

  test("ends with the error of its application", async () => {
    const job = await desk.submit("tickets", "get", { ticket_id: 999_999 });
    const error = await refusal(job.result());
    assert.deepEqual([error.code, error.jobId, job.status], ["upstream_not_found", job.id, "failed"]);
  });

  test("of a batch has a record for each operation, also with the key of a batch that has ended", async () => {
    const lines = [1, 2].map((ticket_id) => ({ entity: "tickets", action: "get", params: { ticket_id } }));
    const idempotencyKey = randomUUID();
    const job = await desk.batch(lines, { idempotencyKey });
    assert.deepEqual(
      (await all(job.records())).map(({ index, status }) => [index, status]),
      [
        [0, "succeeded"],
        [1, "succeeded"],
      ],
    );
    assert.equal((await desk.batch(lines, { idempotencyKey })).id, job.id);
  });
});

describe("a list", () => {
  test("is read whole while its records move", async () => {
    await gateway.connectors.create({ connector_type: "freshdesk", credentials: { subdomain: "acme", api_key: "t" } });
    const fresh = await gateway.connector("freshdesk");
    const before = await all(fresh.records<{ id: number }>("contacts", { per_page: 100 }));
    const found: number[] = [];
    for await (const { result } of fresh.pages<{ id: number }>("contacts", { per_page: 5 })) {
      found.push(...result.map(({ id }) => id));
      const [gone] = result;
      if (gone && found.length <= 10) await fresh.execute("contacts", "delete", { id: gone.id });
    }
    assert.deepEqual(
      found,
      before.map(({ id }) => id),
    );
    assert.ok(found.length > 15, String(found.length));
  });

  test("that is incomplete ends with an error after its records", async () => {
    const body = JSON.stringify({
      status: "success",
      result: [{ id: 1 }],
      next: null,
      incomplete: "the application served no more",
    });
    relay.faults.push({
      path: "/execute",
      answer: { status: 200, headers: { "Content-Type": "application/json" }, body },
    });
    const found: unknown[] = [];
    const error = await refusal(
      (async () => {
        for await (const record of desk.records("tickets")) found.push(record);
      })(),
    );
    assert.deepEqual(
      [error.code, error.message, found],
      ["upstream_rejected", "the application served no more", [{ id: 1 }]],
    );
  });

  test("asks for no page after its limit", async () => {
    const from = relay.received.length;
    assert.equal((await all(desk.records("tickets", { per_page: 5 }, { limit: 7 }))).length, 7);
    assert.equal(relay.to("/execute", from).length, 2);
  });
});

describe("a file", () => {
  const digest = (bytes: Uint8Array) => createHash("sha256").update(bytes).digest("hex");

  test("is resumed after the connection was cut", async () => {
    const whole = await (await desk.download("attachments", { attachment_id: 2 })).bytes();
    const from = relay.received.length;
    relay.faults.push({ path: "/download/", holdAfter: 100_000 });
    const file = await desk.download("attachments", { attachment_id: 2 });
    assert.equal(file.size, whole.length);
    const chunks: Uint8Array[] = [];
    for await (const chunk of file) {
      chunks.push(chunk);
      if (Buffer.concat(chunks).length === 100_000) relay.cut("/download/");
    }
    assert.equal(digest(Buffer.concat(chunks)), digest(whole));
    const [, second] = relay.to("/download/", from);
    assert.equal(second!.headers.range, `bytes=100000-${whole.length - 1}`);
  });

  test("is saved under its name, also after the connection was cut", async () => {
    const whole = await (await desk.download("attachments", { attachment_id: 2 })).bytes();
    relay.faults.push({ path: "/download/", cutAfter: 100_000 });
    const file = await desk.download("attachments", { attachment_id: 2 });
    const path = await file.save(".");
    assert.deepEqual([path, digest(readFileSync(path))], [file.filename, digest(whole)]);
  });

  test("has a name without folder and drive, also if its encoded name is not readable", async () => {
    const names: Record<string, string | null> = {
      ...JSON.parse(readFileSync(new URL("./file_names.json", import.meta.url), "utf8")),
      "filename*=utf-8''%E9.txt; filename=plain.txt": "plain.txt",
      "filename*=utf-8''100%": null,
    };
    for (const [name, expected] of Object.entries(names)) {
      const headers = { "Content-Disposition": `attachment; ${name}` };
      relay.faults.push({ path: "/download/", answer: { status: 200, headers, body: "text" } });
      const file = await desk.download("attachments", { attachment_id: 2 });
      assert.equal(file.filename ?? null, expected, name);
      await file.bytes();
    }
  });

  test("is read by range, as a stream", async () => {
    const file = await desk.download("attachments", { attachment_id: 2 }, { range: "bytes=10-19" });
    assert.equal(file.size, 10);
    assert.equal((await new Response(file.stream).bytes()).length, 10);
  });

  test("that cannot be continued is an error", async () => {
    relay.faults.push(
      { path: "/download/", cutAfter: 100_000 },
      { path: "/download/", answer: { status: 200, body: "other" } },
    );
    const file = await desk.download("attachments", { attachment_id: 2 });
    assert.equal((await refusal(file.bytes())).code, "conflict");
  });

  test("of an export is read from its job", async () => {
    const job = await desk.export("tickets", { per_page: 100 }, { file: "csv", select: ["id", "subject"] });
    const text = Buffer.from(await (await job.download()).bytes()).toString();
    assert.equal(text.split("\n")[0]?.trim(), "id,subject");
    assert.match((await refusal(job.result())).message, /read it with `download`/);
  });
});

describe("events", () => {
  test("continue after the connection was cut, without gap or repeat", async () => {
    const after = await gateway.latestEvent();
    const from = relay.received.length;
    const begin = (ticket_id: number) => desk.submit("tickets", "get", { ticket_id });
    const jobs = [await begin(1)];
    const found: GatewayEvent[] = [];
    for await (const event of gateway.events({ after, types: ["job.*"], connectorId: desk.id })) {
      found.push(event);
      if (found.length === 1) {
        relay.cut("/events/stream");
        jobs.push(await begin(2), await begin(3));
      }
      if (found.length === 3) break;
    }
    assert.deepEqual(new Set(found.map(({ data }) => data["job_id"])), new Set(jobs.map(({ id }) => id)));
    const numbers = found.map(({ id }) => Number(id));
    assert.deepEqual(
      numbers,
      [...new Set(numbers)].sort((one, other) => one - other),
    );
    assert.ok(relay.to("/events/stream", from).length >= 2);
    assert.equal(relay.to("/events/stream", from)[1]!.headers["last-event-id"], String(numbers[0]));
  });

  test("end by the caller's signal", async () => {
    const signal = AbortSignal.timeout(50);
    const after = await gateway.latestEvent();
    await assert.rejects(all(gateway.events({ after, signal })), { name: "TimeoutError" });
  });
});

describe("tools", () => {
  const usage = {
    inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 },
    outputTokens: { total: 1, text: 1, reasoning: 0 },
  };

  /** A model that calls a tool once, and then says what it got. */
  function model(toolName: string, input: unknown): MockLanguageModelV3 {
    return new MockLanguageModelV3({
      doGenerate: async ({ prompt }) => {
        const got = prompt.filter(({ role }) => role === "tool");
        const call = { type: "tool-call" as const, toolCallId: "1", toolName, input: JSON.stringify(input) };
        const text = { type: "text" as const, text: JSON.stringify(got) };
        const reason = got.length ? ("stop" as const) : ("tool-calls" as const);
        return {
          content: [got.length ? text : call],
          finishReason: { unified: reason, raw: reason },
          usage,
          warnings: [],
        };
      },
    });
  }

  async function said(operation: string, input: unknown): Promise<string> {
    const found = await gateway.tools({ connector: desk.id, operations: [operation] });
    const [tool] = found;
    const called = model(tool!.name, input);
    const { text } = await generateText({
      model: called,
      tools: aiTools(found),
      prompt: "Do it.",
      stopWhen: stepCountIs(3),
    });
    const [given] = called.doGenerateCalls[0]!.tools!;
    assert.deepEqual([found.length, tool!.operation, given!.name], [1, operation, tool!.name]);
    assert.deepEqual((given as { inputSchema: unknown }).inputSchema, tool!.schema);
    return text;
  }

  test("run for a model of the AI SDK, and return their errors to it", async () => {
    assert.match(await said("support-desk.tickets.get", { ticket_id: 1 }), /"subject":/);
    assert.match(await said("support-desk.tickets.get", { ticket_id: 999_999 }), /upstream_not_found: /);
    assert.match(await said("support-desk.attachments.download", { attachment_id: 2 }), /"complete":false/);
  });

  test("have the effects and the filter of the gateway", async () => {
    const reads = await gateway.tools({ kind: "support-desk", effect: "read" });
    assert.deepEqual([new Set(reads.map(({ effect }) => effect)), reads.length > 5], [new Set(["read"]), true]);
    const { data } = await gateway.findOperations("create a ticket", { kind: "zendesk" });
    assert.equal(data[0]?.operation, "support-desk.tickets.create");
  });
});

describe("request", () => {
  test("covers every path, with path, query, headers and body", async () => {
    const path = { connector_id: desk.id };
    const inspected = await gateway.request("GET", "/api/v1/integrations/connectors/{connector_id}/inspect", { path });
    const updated = await gateway.request("PATCH", "/api/v1/integrations/connectors/{connector_id}", {
      path,
      body: { name: "Desk" },
    });
    const types = await gateway.request("GET", "/api/v1/integrations/connector-types");
    assert.deepEqual([inspected.id, updated.name, types.data.length > 10], [desk.id, "Desk", true]);
    const raw = await gateway.requestRaw("GET", "/api/v1/integrations/connectors", { query: { limit: 1 } });
    assert.equal(raw.headers.get("Content-Type")?.split(";")[0], "application/json");
  });
});

describe("an id in a path", () => {
  const calls: Record<string, (id: string) => Promise<unknown>> = {
    job: (id) => gateway.jobs.get(id),
    approval: (id) => gateway.approvals.get(id),
    denial: (id) => gateway.approvals.deny(id, "0"),
    connector: (id) => gateway.connectors.get(id),
    entity: (id) => desk.download(id, {}),
    upload: (id) => desk.upload(id, new Blob(["text"])),
    variable: (id) => gateway.request("DELETE", "/api/v1/policies/{name}", { path: { name: id } }),
  };

  for (const [name, call] of Object.entries(calls)) {
    test(`stays one segment, or nothing is sent: ${name}`, async () => {
      const from = relay.received.length;
      for (const id of ["", ".", ".."]) assert.equal((await refusal(call(id))).code, "invalid_params");
      assert.equal(relay.received.length, from);
      await refusal(call("../a?b#c%2e"));
      const [sent] = relay.to("", from);
      assert.match(sent!.path, /\/\.\.%2Fa%3Fb%23c%252e(?=[/?]|$)/);
    });
  }
});

describe("an approval", () => {
  test("is given by another client, and the call goes on", async () => {
    const cedar = `permit(principal, action, resource);
      @approval("A person decides about changes.")
      permit(principal, action == Action::"support-desk.tickets.update", resource);`;
    const path = { name: "typescript" };
    await gateway.request("PUT", "/api/v1/policies/{name}", { path, body: { cedar, mode: "enforce" } });
    const clientId = process.env["APPROVER_ID"]!;
    const approver = new Gateway({ url, clientId, clientSecret: process.env["APPROVER_SECRET"]! });
    const after = await gateway.latestEvent();
    const updated = desk.execute("tickets", "update", { ticket_id: 1, ticket: { status: "solved" } });
    for await (const _ of approver.events({ after, types: ["approval.requested"] })) break;
    const [waiting] = await all(approver.approvals.list());
    const { digest, reason } = await approver.approvals.get(waiting!.id);
    assert.equal((await refusal(gateway.approvals.approve(waiting!.id, digest!))).code, "insufficient_scope");
    const { status } = await approver.approvals.approve(waiting!.id, digest!, "Agreed.");
    assert.deepEqual(
      [reason, status, (await updated).status],
      ["A person decides about changes.", "approved", "success"],
    );
    await gateway.request("DELETE", "/api/v1/policies/{name}", { path });
  });
});

describe("an upload", () => {
  test("of a large file is resumed after the connection was cut", async () => {
    const credentials = { access_token: "t", refresh_token: "r" };
    await gateway.connectors.create({ connector_type: "google-drive", credentials });
    const drive = await gateway.connector("google-drive");
    const file = new Blob([Buffer.alloc(6 << 20, "typescript")]);
    const from = relay.received.length;
    const stored = async () => {
      const { path } = relay.to("/uploads/", from)[0]!;
      const [connector_id = "", , upload_id = ""] = path.split("/").slice(-3);
      const options = { path: { connector_id, upload_id } };
      const one = "/api/v1/integrations/connectors/{connector_id}/uploads/{upload_id}";
      while ((await gateway.request("GET", one, options)).offset === 0);
    };
    relay.faults.push({ path: "/uploads/", breakAfter: { bytes: 5 << 20, when: stored } });
    const { result } = await drive.upload(
      "files_upload",
      file,
      {},
      { filename: "report.txt", contentType: "text/plain" },
    );
    assert.equal(result.name, "report.txt");
    const [first, second] = relay.to("/uploads/", from).filter(({ method }) => method === "PATCH");
    assert.deepEqual([first?.headers["upload-offset"], Number(second?.headers["upload-offset"]) > 0], ["0", true]);
  });
});
