/** One connector: its operations, lists, searches, files and jobs. */

import { openAsBlob } from "node:fs";
import { basename } from "node:path";
import { randomUUID } from "node:crypto";
import { download, type Download } from "./downloads.js";
import { GatewayError } from "./errors.js";
import { accepted, Job, type AcceptedJob, type Answer, type Waiting } from "./jobs.js";
import { numberingOf, pagesOf, type Selection } from "./lists.js";
import type { Params } from "./numbered_pages.js";
import { segment } from "./requests.js";
import type { components } from "./schema.js";
import type { ApiRequest, Reply, Session } from "./session.js";
import { sendFile } from "./uploads.js";

/** A connector, as the API describes it. */
export type ConnectorView = components["schemas"]["Connector"];
/** One line of a batch. */
export interface BatchLine {
  entity: string;
  action: string;
  params?: Params;
  id?: string;
}

/** Options of an operation. */
export interface ExecuteOptions extends Selection, Waiting {
  /** Send nothing; `result` is the requests that would be sent. */
  dryRun?: boolean;
  /** Of a read: accept a cached response of at most this many seconds. */
  maxAge?: number;
  /** Of a write: the key that all attempts share; a new one by default. */
  idempotencyKey?: string;
  /** Why the call is made, for the audit log. */
  intent?: string;
}

/** Options of an operation that runs as a job. */
export interface SubmitOptions extends Omit<ExecuteOptions, "dryRun" | "maxAge"> {
  labels?: Record<string, string>;
  /** One of the client's callback URLs, which receives the job's final event. */
  callbackUrl?: string;
}

/** Options of a list or a search. */
export interface ListOptions extends Selection, Waiting {
  /** The list's action: `list` (the default) or `api_search`. */
  action?: string;
  /** Maximum number of records. */
  limit?: number;
}

/** A search of the synchronized copy. */
export interface SearchOptions extends Waiting {
  sort?: readonly Params[];
  fields?: readonly string[];
  limit?: number;
}

const SEARCH = "context_store_search";
/** Actions that change nothing, so that a repeated call needs no key. */
const READS: ReadonlySet<string> = new Set(["list", "get", "api_search", "search", SEARCH, "download"]);
/** Records of one page of a search. */
const SEARCH_PAGE = 1000;

/** One connector; `view` is what the API says of it. */
export class Connector {
  readonly #session: Session;
  readonly view: ConnectorView;
  /** @internal Whether the gateway has no such connector any longer. */
  isGone = false;

  /** @internal */
  constructor(session: Session, view: ConnectorView) {
    [this.#session, this.view] = [session, view];
  }

  get id(): string {
    return this.view.id;
  }

  get name(): string {
    return this.view.name;
  }

  get kind(): string {
    return this.view.kind;
  }

  /** Run one operation until it finishes, however long it takes. Retries never send a write twice. */
  async execute<R = any>(
    entity: string,
    action: string,
    params: Params = {},
    options: ExecuteOptions = {},
  ): Promise<Answer<R>> {
    if (action === "download") {
      throw new GatewayError({
        code: "invalid_params",
        detail: `the result of ${entity}.download is a file; read it with \`download\``,
      });
    }
    const { dryRun, maxAge, signal } = options;
    const isRead = dryRun === true || READS.has(action);
    const body = { ...bodyOf(entity, action, params, options), ...(dryRun ? { dry_run: true } : {}) };
    const headers = isRead ? (maxAge === undefined ? {} : { "Cache-Control": `max-age=${maxAge}` }) : keyOf(options);
    const reply = await this.#reply<Answer<R> | AcceptedJob>({
      ...this.#post("/execute", body, headers, signal),
      isRead,
    });
    if (reply.status !== 202) return reply.body as Answer<R>;
    return await new Job(this.#session, (reply.body as AcceptedJob).job).result<R>({ signal });
  }

  /** Run one operation on the workers; the job is stored when this returns. */
  async submit(entity: string, action: string, params: Params = {}, options: SubmitOptions = {}): Promise<Job> {
    const { labels, callbackUrl: callback_url, signal } = options;
    const body = { ...bodyOf(entity, action, params, options), labels, callback_url };
    return await accepted(
      this.#session,
      this.#post("/execute", body, { ...keyOf(options), Prefer: "respond-async" }, signal),
    );
  }

  /** Collect all pages of a list or search into a file, which `job.download` reads; `select` names the columns of a CSV file. */
  async export(
    entity: string,
    params: Params = {},
    {
      action = "list",
      file = "ndjson",
      ...options
    }: SubmitOptions & { action?: string; file?: "ndjson" | "csv" | "csv-bom" } = {},
  ): Promise<Job> {
    const { labels, callbackUrl: callback_url, signal } = options;
    const body = { ...bodyOf(entity, action, params, options), labels, callback_url, output: { file } };
    return await accepted(this.#session, this.#post("/execute", body, keyOf(options), signal));
  }

  /** Run many operations as one job; its `records` are `{index, id?, status, result?, error?}`. */
  async batch(
    operations: readonly BatchLine[],
    options: Waiting & { concurrency?: number; stopOnError?: boolean; steps?: boolean; idempotencyKey?: string } = {},
  ): Promise<Job> {
    const { concurrency, stopOnError: stop_on_error, steps, signal } = options;
    const body = { operations, concurrency, stop_on_error, steps };
    const reply = await this.#reply<AcceptedJob>(
      this.#post("/batch", body, { ...keyOf(options), Prefer: "respond-async" }, signal),
    );
    if (reply.status === 202) return new Job(this.#session, reply.body.job);
    // The key is that of a batch that has ended: `Location` names its job.
    return new Job(
      this.#session,
      await this.#session.json({ method: "GET", path: reply.headers.get("Location")!, signal }),
    );
  }

  /** Every page of a list or search; raises GatewayError after the last page if records are or may be missing. */
  async *pages<R = any>(entity: string, params: Params = {}, options: ListOptions = {}): AsyncGenerator<Answer<R[]>> {
    const { action = "list", select, exclude, signal } = options;
    const selection = { select, exclude };
    yield* pagesOf<R>(params, selection, {
      page: (following) => this.execute<R[]>(entity, action, following, { ...selection, signal }),
      numbering: async () =>
        action === SEARCH ? undefined : await numberingOf(this.#session, this.kind, entity, action, params),
    });
  }

  /** The records of every page one by one, at most `limit`; raises GatewayError at the end if records are or may be missing. */
  async *records<R = any>(entity: string, params: Params = {}, options: ListOptions = {}): AsyncGenerator<R> {
    let left = options.limit ?? Infinity;
    for await (const { result } of this.pages<R>(entity, params, options)) {
      yield* result.slice(0, left);
      left -= result.length;
      if (left <= 0) return;
    }
  }

  /** The records of the synchronized copy that match the filter, such as `{eq: {status: "open"}}`; fetches page after page. */
  search<R = any>(
    entity: string,
    filter?: Params,
    { sort, fields, limit, signal }: SearchOptions = {},
  ): AsyncGenerator<R> {
    const query = { ...(filter ? { filter } : {}), ...(sort ? { sort } : {}) };
    const params = { query, limit: Math.min(limit ?? SEARCH_PAGE, SEARCH_PAGE), ...(fields ? { fields } : {}) };
    return this.records<R>(entity, params, { action: SEARCH, signal, ...(limit === undefined ? {} : { limit }) });
  }

  /** A file of the application, or a range of it such as `bytes=0-1023`; an interrupted download is resumed. */
  async download(
    entity: string,
    params: Params,
    { range, signal }: Waiting & { range?: string | undefined } = {},
  ): Promise<Download> {
    return await download(this.#session, { path: this.#path(`/download/${segment(entity)}`), query: params, range, signal });
  }

  /**
   * Send a file, or the file at a path, to the application with the entity's `create`.
   *
   * If the application has upload sessions, the upload of a large file is resumed after a broken connection. Any other
   * file is sent once: if the application's response is lost, the error says that the outcome is unknown.
   */
  async upload<R = any>(
    entity: string,
    file: string | Blob,
    params: Params = {},
    options: Waiting & { filename?: string; contentType?: string } = {},
  ): Promise<Answer<R>> {
    const content = typeof file === "string" ? await openAsBlob(file) : file;
    const filename =
      options.filename ?? (typeof file === "string" ? basename(file) : file instanceof File ? file.name : "file");
    const texts = Object.entries(params).map(([name, value]) => [
      name,
      typeof value === "string" ? value : JSON.stringify(value),
    ]);
    const call = {
      method: "POST",
      path: this.#path(`/upload/${segment(entity)}`),
      query: { ...Object.fromEntries(texts), filename },
      headers: { "Content-Type": options.contentType || content.type || "application/octet-stream" },
      signal: options.signal,
    };
    return (await sendFile(this.#session, call, content)) as Answer<R>;
  }

  async #reply<T>(call: ApiRequest): Promise<Reply<T>> {
    try {
      return await this.#session.reply<T>(call);
    } catch (error) {
      this.isGone ||= error instanceof GatewayError && error.code === "not_found";
      throw error;
    }
  }

  #post(part: string, body: unknown, headers: Record<string, string>, signal: AbortSignal | undefined): ApiRequest {
    return { method: "POST", path: this.#path(part), body, headers, signal };
  }

  #path(part: string): string {
    return `/api/v1/integrations/connectors/${segment(this.id)}${part}`;
  }
}

function bodyOf(entity: string, action: string, params: Params, options: ExecuteOptions): Params {
  const { select: select_fields, exclude: exclude_fields, intent } = options;
  return { entity, action, params, select_fields, exclude_fields, intent };
}

/** The header with the idempotency key, which all attempts of a call share. */
function keyOf({ idempotencyKey = randomUUID() }: { idempotencyKey?: string }): Record<string, string> {
  return { "Idempotency-Key": idempotencyKey };
}
