/** The error that every method raises, made from the problem documents (RFC 9457) of the gateway. */

import { parsed } from "./json.js";
import type { components } from "./schema.js";

type Problem = components["schemas"]["Problem"];

/** The codes of errors; see `/docs/errors` of a gateway. */
export type ErrorCode = Problem["code"];
/** One invalid member of a request; `message` is a complete sentence. */
export type Fault = components["schemas"]["Fault"];
/** The application's own error, without secrets. */
export type UpstreamFault = components["schemas"]["UpstreamFault"];

/** Codes for responses without a code of the gateway, such as those of a proxy. */
const CODES: Readonly<Record<number, ErrorCode>> = {
  400: "malformed_request",
  401: "unauthorized",
  403: "forbidden",
  404: "not_found",
  409: "conflict",
  413: "body_too_large",
  416: "range_not_satisfiable",
  422: "invalid_params",
  429: "rate_limited",
  502: "unavailable",
  503: "unavailable",
  504: "unavailable",
};
const RETRYABLE: ReadonlySet<ErrorCode> = new Set<ErrorCode>(["rate_limited", "unavailable"]);

/** What an error is made of; `code` and `detail` are required. */
export type ErrorMembers = Partial<Problem> & Pick<Problem, "code" | "detail">;

/** A refusal of the gateway or of an application, or a lost connection. Match on `code`; `message` says how to fix the cause. */
export class GatewayError extends Error {
  override readonly name = "GatewayError";
  /** The code to match on, such as `invalid_params`. */
  readonly code: ErrorCode;
  /** The HTTP status; undefined if there was no response. */
  readonly status: number | undefined;
  /** The code as a URN. */
  readonly type: string;
  /** The code in words. */
  readonly title: string;
  /** Whether the same request may be sent again. */
  readonly retryable: boolean;
  /** The request's id; quote it when you ask for help. */
  readonly requestId: string | undefined;
  /** All faults of an invalid request. */
  readonly errors: readonly Fault[];
  /** The application's own error. */
  readonly upstream: UpstreamFault | undefined;
  /** Seconds to wait before the next attempt. */
  readonly retryAfter: number | undefined;
  /** All members of the problem document, such as `policy`, `outcome` or `resets_at`. */
  readonly problem: ErrorMembers;
  /** `false`: the request has not reached the gateway. */
  readonly sent: boolean;
  /** The job that ended with the error. */
  jobId: string | undefined;

  constructor(problem: ErrorMembers, options: { cause?: unknown; retryAfter?: number | undefined; sent?: boolean } = {}) {
    super(problem.detail, options.cause === undefined ? undefined : { cause: options.cause });
    this.problem = problem;
    this.code = problem.code;
    this.status = problem.status;
    this.type = problem.type ?? `urn:gateway:error:${problem.code}`;
    this.title = problem.title ?? problem.code.replaceAll("_", " ");
    this.retryable = problem.retryable ?? RETRYABLE.has(problem.code);
    this.requestId = problem.request_id;
    this.errors = problem.errors ?? [];
    this.upstream = problem.upstream ?? undefined;
    this.retryAfter = options.retryAfter;
    this.sent = options.sent ?? true;
  }

  /** What is wrong, and how to fix it; the same as `message`. */
  get detail(): string {
    return this.message;
  }
}

/** The error of a response that is not successful. */
export async function errorOf(response: Response): Promise<GatewayError> {
  const members = problemIn(await response.text().catch(() => ""));
  const problem: ErrorMembers = {
    ...members,
    status: response.status,
    code: members.code ?? CODES[response.status] ?? (response.status >= 500 ? "internal_error" : "malformed_request"),
    detail: members.detail ?? members.message ?? foreign(response),
  };
  const requestId = response.headers.get("X-Request-Id");
  if (requestId !== null) problem.request_id ??= requestId;
  return new GatewayError(problem, { retryAfter: retryAfterOf(response.headers) });
}

/** The error of a broken connection. If the request was sent, the gateway may have executed it. */
export function connectionLost(cause: unknown, sent = true): GatewayError {
  return new GatewayError(
    { code: "unavailable", detail: `the connection to the gateway was lost: ${reasonOf(cause)}` },
    { cause, sent },
  );
}

/** The reason of an error of `fetch`, which is in its cause. */
export function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.cause instanceof Error ? reasonOf(error.cause) : error.message || error.name;
}

function problemIn(text: string): Partial<Problem> {
  try {
    const document: unknown = parsed(text);
    return typeof document === "object" && document !== null && !Array.isArray(document) ? document : {};
  } catch {
    return {};
  }
}

function foreign(response: Response): string {
  if (response.status < 400) {
    const target = response.headers.get("Location") ?? "another URL";
    return `the gateway's URL redirects to ${target}; set GATEWAY_URL to that URL`;
  }
  return `the response with status ${response.status} is not from a gateway; check GATEWAY_URL`;
}

function retryAfterOf(headers: Headers): number | undefined {
  const text = headers.get("Retry-After") ?? "";
  return /^\d{1,9}$/.test(text) ? Number(text) : undefined;
}
