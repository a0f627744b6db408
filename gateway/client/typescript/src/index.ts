/**
 * The client of a connector gateway.
 *
 * @example
 * const gateway = new Gateway({ url, clientId, clientSecret });
 * const desk = await gateway.connector("support-desk");
 * const { result } = await desk.execute("tickets", "list", { per_page: 2 });
 */

export type { Approval, Approvals, ApprovalSummary } from "./approvals.js";
export type {
  BatchLine,
  Connector,
  ConnectorView,
  ExecuteOptions,
  ListOptions,
  SearchOptions,
  SubmitOptions,
} from "./connector.js";
export type { Connectors, ConnectLink } from "./connectors.js";
export type { Download } from "./downloads.js";
export { GatewayError, type ErrorCode, type Fault, type UpstreamFault } from "./errors.js";
export type { StreamedEvent } from "./event_stream.js";
export { Gateway, type EventFilter, type GatewayEvent, type OperationMatches } from "./gateway.js";
export type { Answer, Job, JobFilter, Jobs, JobView, Waiting } from "./jobs.js";
export type { Selection } from "./lists.js";
export type { Params } from "./numbered_pages.js";
export type { Method, PathOf, RequestOptions, ResponseOf } from "./requests.js";
export type { RetryPolicy } from "./retries.js";
export type { components, operations, paths } from "./schema.js";
export type { GatewayOptions } from "./settings.js";
export type { Tool, ToolFilter } from "./tools.js";
