/** Jobs: follow them to their end, read their results, cancel them, or retry them. */

import { download, type Download } from "./downloads.js";
import { followed, type StreamedEvent } from "./event_stream.js";
import { GatewayError } from "./errors.js";
import { parsed } from "./json.js";
import { segment } from "./requests.js";
import type { components } from "./schema.js";
import type { ApiRequest, Reply, Session } from "./session.js";

/** The state of a job. */
export type JobView = components["schemas"]["Job"];
/** The answer of an operation; `R` is the type of `result`. */
export type Answer<R = any> = Omit<components["schemas"]["Answer"], "result"> & { result: R };

/** Options of a method that waits. */
export interface Waiting {
  /** Ends the wait; the method raises the signal's reason. The job runs on. */
  signal?: AbortSignal | undefined;
}

/** @internal The response 202. */
export type AcceptedJob = components["schemas"]["AcceptedJob"];

/** Seconds of one long poll; below the idle timeout of common proxies. */
const WAIT = 25;
const FINAL: ReadonlySet<string> = new Set(["succeeded", "failed", "canceled", "unknown"]);

/** One job; `view` is its state when it was last read. */
export class Job {
  readonly #session: Session;
  view: JobView;

  /** @internal */
  constructor(session: Session, view: JobView) {
    [this.#session, this.view] = [session, view];
  }

  get id(): string {
    return this.view.id;
  }

  get status(): JobView["status"] {
    return this.view.status;
  }

  /** Whether the job has ended, with any status. */
  get isDone(): boolean {
    return this.view.done || FINAL.has(this.view.status);
  }

  /** Read the job's current state. */
  async refresh({ signal }: Waiting = {}): Promise<this> {
    this.view = await this.#session.json<JobView>({ method: "GET", path: this.#path(), signal });
    return this;
  }

  /** Wait until the job has ended, with any status; `onChange` gets its view at first and after each change. */
  async wait({ onChange, signal }: Waiting & { onChange?: (view: JobView) => void } = {}): Promise<this> {
    let etag: string | null = null;
    do {
      const reply: Reply<JobView> = await this.#session.reply<JobView>({
        method: "GET",
        path: this.#path(),
        signal,
        ...(etag === null ? {} : { query: { wait: WAIT }, headers: { "If-None-Match": etag } }),
      });
      if (reply.status === 304) continue;
      this.view = reply.body;
      etag = reply.headers.get("ETag") ?? '"0"';
      onChange?.(this.view);
    } while (!this.isDone);
    return this;
  }

  /** The job's events after the id `after`, until `done`; a broken stream is resumed. */
  async *events({ after = "0", signal }: Waiting & { after?: string } = {}): AsyncGenerator<StreamedEvent> {
    for await (const event of followed(this.#session, { path: this.#path("/events"), lastId: after, signal })) {
      yield event;
      if (event.name === "done") return;
    }
  }

  /** Wait for the job and return its answer; raises the job's own error, with `jobId`. */
  async result<R = any>({ signal }: Waiting = {}): Promise<Answer<R>> {
    return await this.#with(async () => {
      await this.wait({ signal });
      const { body } = await this.#session.reply<Answer<R> | undefined>({
        method: "GET",
        path: this.#path("/result"),
        signal,
      });
      if (body !== undefined) return body;
      throw new GatewayError({ code: "invalid_params", detail: "the job's result is a file; read it with `download`" });
    });
  }

  /** Wait for the job and yield the records of its result one by one, in constant memory. */
  async *records<R = any>({ signal }: Waiting = {}): AsyncGenerator<R> {
    const call = { method: "GET", path: this.#path("/result"), headers: { Accept: "application/x-ndjson" }, signal };
    const response = await this.#with(async () => {
      await this.wait({ signal });
      return await this.#session.open(call);
    });
    const decoder = new TextDecoder();
    let rest = "";
    for await (const chunk of this.#session.chunks(response, call)) {
      const lines = (rest + decoder.decode(chunk, { stream: true })).split("\n");
      rest = lines.pop()!;
      for (const line of lines) yield parsed(line) as R;
    }
  }

  /** Wait for the job and read its file, or a range of it such as `bytes=0-1023`. */
  async download({ range, signal }: Waiting & { range?: string } = {}): Promise<Download> {
    return await this.#with(async () => {
      await this.wait({ signal });
      return await download(this.#session, { path: this.#path("/result"), range, signal });
    });
  }

  /** Cancel the job; a request already sent to the application is allowed to finish. */
  async cancel(): Promise<this> {
    this.view = await this.#session.json<JobView>({ method: "POST", path: this.#path("/cancel") });
    return this;
  }

  /** Run the same work as a new job; with `confirm` also a write that may have happened. */
  async retry({ confirm = false }: { confirm?: boolean } = {}): Promise<Job> {
    return await accepted(this.#session, { method: "POST", path: this.#path("/retry"), body: { confirm } });
  }

  #path(part = ""): string {
    return `/api/v1/jobs/${segment(this.id)}${part}`;
  }

  /** Add the job's id to errors. */
  async #with<T>(run: () => Promise<T>): Promise<T> {
    try {
      return await run();
    } catch (error) {
      if (error instanceof GatewayError) error.jobId = this.id;
      throw error;
    }
  }
}

/** @internal The job that a request starts. */
export async function accepted(session: Session, call: ApiRequest): Promise<Job> {
  return new Job(session, (await session.json<AcceptedJob>(call)).job);
}

/** The jobs of the organization. */
export class Jobs {
  readonly #session: Session;

  /** @internal */
  constructor(session: Session) {
    this.#session = session;
  }

  /** One job by its id; raises GatewayError `not_found`. */
  async get(id: string): Promise<Job> {
    return new Job(this.#session, await this.#session.json<JobView>({ method: "GET", path: `/api/v1/jobs/${segment(id)}` }));
  }

  /** Jobs, newest first, at most `limit`; fetches page after page. */
  async *list(filter: JobFilter = {}): AsyncGenerator<Job> {
    const { status, connectorId, entity, createdAfter, limit } = filter;
    const query = {
      ...{ status, connector_id: connectorId, entity, created_after: createdAfter?.toISOString() },
      limit: Math.min(limit ?? 100, 1000),
    };
    const call = { method: "GET", path: "/api/v1/jobs", query };
    for await (const view of this.#session.items<JobView>(call, limit)) yield new Job(this.#session, view);
  }
}

/** Which jobs a list has. */
export interface JobFilter {
  status?: JobView["status"];
  connectorId?: string;
  entity?: string;
  createdAfter?: Date;
  limit?: number;
}
