/** Connectors: look them up, create them, and let people connect them. */

import { Connector, type ConnectorView } from "./connector.js";
import { GatewayError } from "./errors.js";
import { segment } from "./requests.js";
import type { components } from "./schema.js";
import type { Session } from "./session.js";

/** A link that lets a person connect an application. */
export type ConnectLink = components["schemas"]["ConnectLink"];
type NewConnector = components["schemas"]["CreateConnector"];
type NewLink = components["schemas"]["CreateConnectSession"];

const PATH = "/api/v1/integrations/connectors";
const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

/** The connectors of the workspace. */
export class Connectors {
  readonly #session: Session;
  /** Connectors by the workspaces and names that callers have used. */
  readonly #found = new Map<string, Connector>();

  /** @internal */
  constructor(session: Session) {
    this.#session = session;
  }

  /**
   * The connector with this id or name, or the only one of this kind or application in the workspace.
   *
   * Raises GatewayError `not_found` and `conflict`, which list the candidates.
   */
  async find(name: string, workspace = this.#session.settings.workspace): Promise<Connector> {
    const key = JSON.stringify([name, workspace]);
    const known = this.#found.get(key);
    if (known && !known.isGone) return known;
    const found = UUID.test(name)
      ? await this.get(name)
      : this.#of(choose(name, await this.#usable(workspace), workspace));
    this.#found.set(key, found);
    return found;
  }

  /** The connectors of a workspace, by default the client's own; with `workspace: null` of all. */
  async list(filter: { kind?: string; status?: string; workspace?: string | null } = {}): Promise<Connector[]> {
    const { kind, status, workspace = this.#session.settings.workspace } = filter;
    return (await this.#views({ workspace_name: workspace, connector_type: kind, status })).map((view) =>
      this.#of(view),
    );
  }

  /** One connector by its id; raises GatewayError `not_found`. */
  async get(id: string): Promise<Connector> {
    return this.#of(await this.#session.json<ConnectorView>({ method: "GET", path: `${PATH}/${segment(id)}` }));
  }

  /** Create a connector with credentials, in the client's workspace unless the body names another. */
  async create(body: Omit<NewConnector, "workspace_name"> & { workspace_name?: string }): Promise<Connector> {
    const { workspace: workspace_name } = this.#session.settings;
    const call = { method: "POST", path: PATH, body: { workspace_name, ...body } };
    return this.#of(await this.#session.json<ConnectorView>(call));
  }

  /** A link for a person to connect an application, once, in the client's workspace unless the body names another. */
  async createLink(body: Omit<NewLink, "workspace_name"> & { workspace_name?: string } = {}): Promise<ConnectLink> {
    const { workspace: workspace_name } = this.#session.settings;
    const call = { method: "POST", path: "/api/v1/connect/sessions", body: { workspace_name, ...body } };
    return await this.#session.json<ConnectLink>(call);
  }

  /** The connectors that this client can call; an administrator's list has those of others too. */
  async #usable(workspace: string): Promise<ConnectorView[]> {
    const found = await this.#views({ workspace_name: workspace });
    if (found.every((each) => each.owner === null)) return found;
    return await this.#views({ workspace_name: workspace, usable: true });
  }

  async #views(query: Record<string, unknown>): Promise<ConnectorView[]> {
    return (await this.#session.json<{ data: ConnectorView[] }>({ method: "GET", path: PATH, query })).data;
  }

  #of(view: ConnectorView): Connector {
    return new Connector(this.#session, view);
  }
}

/** The connector with that name, else of that kind or application; the caller's own before shared ones. */
function choose(name: string, connectors: readonly ConnectorView[], workspace: string): ConnectorView {
  const ready = connectors.filter((each) => each.status !== "pending");
  let matches = ready.filter((each) => each.name === name);
  if (!matches.length) {
    matches = ready.filter((each) => [each.kind, canonical(each.application)].includes(canonical(name)));
  }
  for (const isBetter of [
    (each: ConnectorView) => each.status === "active",
    (each: ConnectorView) => each.owner !== null,
  ]) {
    if (matches.length > 1 && matches.some(isBetter)) matches = matches.filter(isBetter);
  }
  if (matches.length === 1) return matches[0]!;
  const named = (each: ConnectorView) => `${each.name} (${each.application}, ${each.kind}, ${each.id})`;
  if (matches.length) {
    const detail = `'${name}' is ${matches.length} connectors: ${matches.map(named).join(", ")}; use an id or another name`;
    throw new GatewayError({ code: "conflict", detail });
  }
  const existing = ready.map(named).join(", ") || "none";
  const detail = `the workspace '${workspace}' has no connector '${name}'; it has ${existing}. Create one, or name another workspace`;
  throw new GatewayError({ code: "not_found", detail });
}

/** The form of a kind's name: lower case, with hyphens. */
function canonical(name: string): string {
  return name
    .trim()
    .toLowerCase()
    .replace(/[\s_.-]+/g, "-");
}
