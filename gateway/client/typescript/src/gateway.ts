/** `Gateway`: the client of the gateway's API. */

import { Approvals } from "./approvals.js";
import type { Connector } from "./connector.js";
import { Connectors } from "./connectors.js";
import { followed } from "./event_stream.js";
import { Jobs, type Waiting } from "./jobs.js";
import { pathWith, type Method, type PathOf, type RequestArguments, type ResponseOf } from "./requests.js";
import type { components } from "./schema.js";
import { Session, type ApiRequest, type Content, type Query } from "./session.js";
import { settingsOf, type GatewayOptions } from "./settings.js";
import { toolsOf, type Tool, type ToolFilter } from "./tools.js";

/** An event of the organization's feed. */
export type GatewayEvent = components["schemas"]["Event"];
/** The operations for a task. */
export type OperationMatches = components["schemas"]["OperationMatches"];

/** Which events a feed has. */
export interface EventFilter extends Waiting {
  /** Only events after the one with this id; by default from the oldest stored event. */
  after?: number;
  /** Types, or groups such as `job.*`. */
  types?: readonly string[];
  /** The id of a connector. */
  connectorId?: string;
}

/** A client of a gateway. Its methods raise GatewayError. */
export class Gateway {
  readonly #session: Session;
  /** The connectors of the workspace. */
  readonly connectors: Connectors;
  /** The jobs of the organization. */
  readonly jobs: Jobs;
  /** Calls that wait for an approval. */
  readonly approvals: Approvals;

  /** Options that are left out come from `GATEWAY_URL`, `GATEWAY_CLIENT_ID`, `GATEWAY_CLIENT_SECRET` and `GATEWAY_WORKSPACE`. */
  constructor(options: GatewayOptions = {}) {
    this.#session = new Session(settingsOf(options));
    this.connectors = new Connectors(this.#session);
    this.jobs = new Jobs(this.#session);
    this.approvals = new Approvals(this.#session);
  }

  /** The connector with this id or name, or the only one of this kind in the workspace. */
  async connector(name: string, { workspace }: { workspace?: string } = {}): Promise<Connector> {
    return await this.connectors.find(name, workspace);
  }

  /** Operations as tools for a model; `aiTools` of `agent-connector-gateway/ai` gives them to the AI SDK. */
  async tools(filter: ToolFilter = {}): Promise<Tool[]> {
    return await toolsOf(this.#session, this.connectors, filter);
  }

  /** The operations for a task in plain words, best first; `closest` and `message` say what is missing if none does it. */
  async findOperations(
    task: string,
    filter: { kind?: string; connectorId?: string; limit?: number } = {},
  ): Promise<OperationMatches> {
    const { kind, connectorId: connector_id, limit } = filter;
    const query = { query: task, kind, connector_id, limit };
    return await this.#session.json<OperationMatches>({ method: "GET", path: "/api/v1/operations", query });
  }

  /**
   * The events of the organization in order; waits for new ones, and continues after a broken connection.
   *
   * Store the id of the last event that you have handled: with it as `after`, no event is missed or repeated. Raises
   * GatewayError `cursor_expired` if events after `after` have been deleted.
   */
  async *events({ after, types, connectorId, signal }: EventFilter = {}): AsyncGenerator<GatewayEvent> {
    const query = { types: types?.join(","), connector_id: connectorId };
    const lastId = after === undefined ? undefined : String(after);
    const source = { path: "/api/v1/events/stream", query, lastId, signal };
    for await (const { data } of followed(this.#session, source)) yield data as GatewayEvent;
  }

  /** The id of the newest event; `events({ after })` with it yields new events only. */
  async latestEvent(): Promise<number> {
    const page = await this.request("GET", "/api/v1/events", { query: { limit: 1 } });
    return page.latest_id;
  }

  /** Any request of the API, typed: the JSON of its successful response. Sent again after a failure only if that is safe. */
  async request<M extends Method, P extends PathOf<M>>(
    method: M,
    path: P,
    ...[options]: RequestArguments<M, P>
  ): Promise<ResponseOf<M, P>> {
    return await this.#session.json<ResponseOf<M, P>>(apiRequest(method, path, options));
  }

  /** As `request`, for responses that are not JSON: the response, whose body the caller reads. */
  async requestRaw<M extends Method, P extends PathOf<M>>(
    method: M,
    path: P,
    ...[options]: RequestArguments<M, P>
  ): Promise<Response> {
    return await this.#session.open(apiRequest(method, path, options));
  }
}

/** What `RequestOptions` has for every path. */
interface AnyOptions extends Waiting {
  path?: Record<string, unknown>;
  query?: Query;
  headers?: Record<string, string>;
  body?: unknown;
}

function apiRequest(method: Method, template: string, options: AnyOptions = {}): ApiRequest {
  const { path, body, ...others } = options;
  const isContent = typeof body === "string" || body instanceof Blob || body instanceof Uint8Array;
  return {
    ...others,
    method,
    path: pathWith(template, path),
    ...(isContent ? { content: () => body as Content } : { body }),
  };
}
