/** Calls that wait for a person's approval; for clients with the scope `approve`. */

import { segment } from "./requests.js";
import type { components } from "./schema.js";
import type { Session } from "./session.js";

/** An approval with the exact requests and what they change. */
export type Approval = components["schemas"]["Approval"];
/** An approval in a list. */
export type ApprovalSummary = components["schemas"]["ApprovalSummary"];

const PATH = "/api/v1/approvals";

/** The approvals of the organization. */
export class Approvals {
  readonly #session: Session;

  /** @internal */
  constructor(session: Session) {
    this.#session = session;
  }

  /** Approvals, newest first, by default those that wait; fetches page after page. */
  list(
    filter: { status?: ApprovalSummary["status"]; connectorId?: string; limit?: number } = {},
  ): AsyncGenerator<ApprovalSummary> {
    const { status = "pending", connectorId, limit } = filter;
    const query = { status, connector_id: connectorId, limit: Math.min(limit ?? 100, 1000) };
    return this.#session.items<ApprovalSummary>({ method: "GET", path: PATH, query }, limit);
  }

  /** One approval; raises GatewayError `not_found`. */
  async get(id: string): Promise<Approval> {
    return await this.#session.json<Approval>({ method: "GET", path: `${PATH}/${segment(id)}` });
  }

  /** Approve exactly what has this digest; raises GatewayError `approval_changed`, `approver_is_requester` or `conflict`. */
  async approve(id: string, digest: string, reason?: string): Promise<Approval> {
    return await this.#decide(id, "approve", digest, reason);
  }

  /** Deny the call; raises as `approve` does. */
  async deny(id: string, digest: string, reason?: string): Promise<Approval> {
    return await this.#decide(id, "deny", digest, reason);
  }

  async #decide(id: string, word: string, digest: string, reason: string | undefined): Promise<Approval> {
    return await this.#session.json<Approval>({
      method: "POST",
      path: `${PATH}/${segment(id)}/${word}`,
      body: { digest, reason },
    });
  }
}
