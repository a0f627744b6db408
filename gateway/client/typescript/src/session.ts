/** Sends requests to the gateway with a token, and repeats those that are safe to repeat. */

import { connectionLost, errorOf, GatewayError, reasonOf } from "./errors.js";
import { parsed } from "./json.js";
import { pauseAfter, sleep, unless } from "./retries.js";
import type { Settings } from "./settings.js";

const TOKEN_PATH = "/api/v1/account/applications/token";
/** A token is renewed this many milliseconds before it expires. */
const SKEW = 30_000;
/** Errors of `fetch` before anything of the request is sent. */
const NOT_SENT = new Set([
  "ECONNREFUSED",
  "ENOTFOUND",
  "EAI_AGAIN",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "UND_ERR_CONNECT_TIMEOUT",
]);

/** The body of a request that is not JSON. */
export type Content = NonNullable<RequestInit["body"]>;
/** Values of a query; those that are undefined or null are left out. */
export type Query = Record<string, unknown>;

/** @internal One request to the gateway. */
export interface ApiRequest {
  method: string;
  path: string;
  query?: Query | undefined;
  /** The body as JSON, or in place of it `content`, which is made anew for each attempt. */
  body?: unknown;
  content?: (() => Content) | undefined;
  headers?: Record<string, string> | undefined;
  /** Whether a POST changes nothing. */
  isRead?: boolean | undefined;
  signal?: AbortSignal | undefined;
}

/** @internal A response with its JSON; `body` is undefined if the response has another body, which is not read, or none. */
export interface Reply<T> {
  status: number;
  headers: Headers;
  body: T;
}

/** @internal */
export class Session {
  #token: { value: string; endsAt: number } | undefined;
  #renewal: Promise<string> | undefined;

  readonly #documents = new Map<string, Promise<unknown>>();

  constructor(readonly settings: Settings) {}

  /** A document that does not change while the program runs: fetched once, again if that failed. */
  async once<T>(path: string, fetched: (path: string) => Promise<T>): Promise<T> {
    const known = this.#documents.get(path) ?? fetched(path);
    this.#documents.set(path, known);
    try {
      return (await known) as T;
    } catch (error) {
      this.#documents.delete(path);
      throw error;
    }
  }

  /** The JSON of a successful response; raises GatewayError. */
  async json<T>(call: ApiRequest): Promise<T> {
    return (await this.reply<T>(call)).body;
  }

  async reply<T>(call: ApiRequest): Promise<Reply<T>> {
    return await this.#withRetries(call, async () => {
      const response = await this.#successful(call);
      const { status, headers } = response;
      try {
        if (headers.get("Content-Type")?.startsWith("application/json")) {
          return { status, headers, body: parsed(await response.text()) as T };
        }
        await response.body?.cancel();
        return { status, headers, body: undefined as T };
      } catch (error) {
        throw this.#broken(error, call);
      }
    });
  }

  /** A successful response whose body has not been read; raises GatewayError. */
  async open(call: ApiRequest): Promise<Response> {
    return await this.#withRetries(call, () => this.#successful(call));
  }

  /** The chunks of a response's body; raises GatewayError if the connection breaks. */
  async *chunks(response: Response, call: ApiRequest): AsyncGenerator<Uint8Array> {
    if (response.body === null) return;
    try {
      yield* response.body as AsyncIterable<Uint8Array>;
    } catch (error) {
      throw this.#broken(error, call);
    }
  }

  /** The items of a list, at most `limit`; fetches page after page. */
  async *items<T>(call: ApiRequest, limit = Infinity): AsyncGenerator<T> {
    let cursor: string | null | undefined;
    let left = limit;
    do {
      const page = await this.json<{ data: T[]; next_cursor?: string | null }>({
        ...call,
        query: { ...call.query, cursor },
      });
      yield* page.data.slice(0, left);
      left -= page.data.length;
      cursor = page.next_cursor;
    } while (cursor && left > 0);
  }

  async #withRetries<T>(call: ApiRequest, send: () => Promise<T>): Promise<T> {
    const isSafe =
      Boolean(call.isRead) || ["GET", "HEAD"].includes(call.method) || "Idempotency-Key" in (call.headers ?? {});
    for (let tried = 1; ; tried += 1) {
      try {
        return await send();
      } catch (error) {
        if (!(error instanceof GatewayError)) throw error;
        const pause = pauseAfter(this.settings.policy, error, tried, isSafe);
        if (pause === undefined) throw error;
        await sleep(pause, call.signal);
      }
    }
  }

  async #successful(call: ApiRequest): Promise<Response> {
    const token = await unless(this.#bearer(), call.signal);
    let response = await this.#send(call, token);
    if (response.status === 401) {
      await response.body?.cancel();
      response = await this.#send(call, await unless(this.#bearer(token), call.signal));
    }
    if (response.status < 300 || response.status === 304) return response;
    throw await errorOf(response);
  }

  /** A token that is valid for at least 30 seconds. Concurrent callers without one share the request for it. */
  async #bearer(refused?: string): Promise<string> {
    const { token } = this.settings;
    if (token !== undefined) {
      if (refused === undefined) return token;
      const detail = "the token has expired or was revoked; open a new session";
      throw new GatewayError({ code: "unauthorized", status: 401, detail });
    }
    const known = this.#token;
    if (known && known.value !== refused && Date.now() < known.endsAt - SKEW) return known.value;
    this.#renewal ??= this.#newToken().finally(() => (this.#renewal = undefined));
    return await this.#renewal;
  }

  async #newToken(): Promise<string> {
    const { clientId, clientSecret } = this.settings;
    const call = { method: "POST", path: TOKEN_PATH, body: { client_id: clientId, client_secret: clientSecret } };
    try {
      const response = await this.#send(call);
      if (response.status >= 300) throw await errorOf(response);
      const issued = (await response.json()) as { access_token: string; expires_in?: number };
      this.#token = { value: issued.access_token, endsAt: Date.now() + (issued.expires_in ?? 900) * 1000 };
      return issued.access_token;
    } catch (error) {
      throw beforeSending(error);
    }
  }

  /** The response to a request, with any status. */
  async #send(call: ApiRequest, token?: string): Promise<Response> {
    const body = call.content ? call.content() : call.body === undefined ? null : JSON.stringify(call.body);
    const { url, fetch } = this.settings;
    try {
      return await fetch(url + call.path + queryOf(call.query), {
        method: call.method,
        headers: this.#headers(call, token),
        body,
        redirect: "manual",
        signal: call.signal ?? null,
      });
    } catch (error) {
      throw this.#broken(error, call);
    }
  }

  #headers(call: ApiRequest, token: string | undefined): Record<string, string> {
    const { organizationId } = this.settings;
    return {
      Accept: "application/json",
      "User-Agent": "gateway-client-typescript",
      ...(call.body === undefined ? {} : { "Content-Type": "application/json" }),
      ...(token === undefined ? {} : { Authorization: `Bearer ${token}` }),
      ...(organizationId === undefined ? {} : { "X-Organization-Id": organizationId }),
      ...call.headers,
    };
  }

  /** The error for an error of `fetch`; that of the caller's own signal stays as it is. */
  #broken(error: unknown, call: ApiRequest): unknown {
    if (call.signal?.aborted || error instanceof GatewayError) return error;
    const code = codeOf(error);
    if (!NOT_SENT.has(code)) return connectionLost(error);
    const detail = `cannot reach the gateway at ${this.settings.url}: ${reasonOf(error)}; start it with \`gateway up\` or set GATEWAY_URL`;
    return new GatewayError({ code: "unavailable", detail }, { cause: error, sent: false });
  }
}

/** The query as text, with its question mark. */
function queryOf(query: Query = {}): string {
  const given = Object.entries(query).filter(([, value]) => value !== undefined && value !== null);
  const text = String(new URLSearchParams(Object.fromEntries(given.map(([name, value]) => [name, String(value)]))));
  return text && `?${text}`;
}

function codeOf(error: unknown): string {
  const cause = error instanceof Error ? error.cause : undefined;
  const first: unknown = cause instanceof AggregateError ? cause.errors[0] : cause;
  return String((first as { code?: unknown } | undefined)?.code ?? "");
}

/** The error of a request for a token. The caller's own request was not sent, so it may be repeated whatever its effect. */
function beforeSending(error: unknown): unknown {
  if (!(error instanceof GatewayError)) return connectionLost(error, false);
  const { code, problem, retryAfter, cause } = error;
  if (code === "unauthorized") {
    return new GatewayError({
      ...problem,
      detail: `${error.detail}; check GATEWAY_CLIENT_ID and GATEWAY_CLIENT_SECRET`,
    });
  }
  return code === "unavailable"
    ? new GatewayError(problem, { cause, sent: false, retryAfter })
    : error;
}
