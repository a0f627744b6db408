/** The settings of a client: options first, then the environment. */

import { DEFAULT_POLICY, type RetryPolicy } from "./retries.js";

/** Options of `new Gateway`. Those that are left out come from the environment variable that their comment names. */
export interface GatewayOptions {
  /** The gateway's URL; `GATEWAY_URL`. */
  url?: string;
  /** The id of a client; `GATEWAY_CLIENT_ID`. */
  clientId?: string;
  /** The client's secret; `GATEWAY_CLIENT_SECRET`. */
  clientSecret?: string;
  /** A bearer token in place of a client, such as that of a session for a person. */
  token?: string;
  /** The workspace in which connectors are looked up and created; `GATEWAY_WORKSPACE`, by default `default`. */
  workspace?: string;
  /** The organization, if the client can access several; `GATEWAY_ORGANIZATION_ID`. */
  organizationId?: string;
  /** How requests are repeated. */
  retries?: Partial<RetryPolicy>;
  /** In place of the global `fetch`, for example to use a proxy. */
  fetch?: typeof fetch;
}

/** @internal */
export interface Settings {
  url: string;
  clientId: string;
  clientSecret: string;
  token: string | undefined;
  workspace: string;
  organizationId: string | undefined;
  policy: RetryPolicy;
  fetch: typeof fetch;
}

/** @internal */
export function settingsOf(options: GatewayOptions): Settings {
  const { env } = process;
  const url = options.url ?? env["GATEWAY_URL"];
  const clientId = options.clientId ?? env["GATEWAY_CLIENT_ID"];
  const clientSecret = options.clientSecret ?? env["GATEWAY_CLIENT_SECRET"];
  if (!url) throw new TypeError("set the option url or GATEWAY_URL to the gateway's URL");
  if (options.token === undefined && !(clientId && clientSecret)) {
    throw new TypeError(
      "set the options clientId and clientSecret, GATEWAY_CLIENT_ID and GATEWAY_CLIENT_SECRET, or token",
    );
  }
  return {
    url: url.replace(/\/+$/, ""),
    clientId: clientId ?? "",
    clientSecret: clientSecret ?? "",
    token: options.token,
    workspace: options.workspace ?? env["GATEWAY_WORKSPACE"] ?? "default",
    organizationId: options.organizationId ?? env["GATEWAY_ORGANIZATION_ID"],
    policy: { ...DEFAULT_POLICY, ...options.retries },
    fetch: options.fetch ?? fetch,
  };
}
