"""Which rows of which tables move with an organization, in an order in which rows follow those that they refer to."""

from collections.abc import Mapping
from dataclasses import dataclass

_OWN = "organization_id = $1"
_OF_JOBS = f"""
    {_OWN} AND job_id NOT IN (SELECT id FROM jobs WHERE {_OWN} AND task = 'export_organization')
"""
_MEMBERS = "(SELECT client_id FROM client_organizations WHERE organization_id = $1)"


@dataclass(frozen=True, slots=True)
class MovedTable:
    """A table, and the rows of the organization `$1`."""

    name: str
    where: str = _OWN
    order: str = "1"
    #: columns whose existing rows of the target are kept; others of the organizations there may have the same
    kept: str | None = None
    #: rows of one statement
    batch: int = 500
    #: executed before its rows are imported, and after all rows are
    before: str | None = None
    after: str | None = None


#: the audit log is moved with its chain, because its rows get other ids
AUDIT = "audit"

MOVED: tuple[MovedTable, ...] = (
    MovedTable("organizations", "id = $1"),
    MovedTable("clients", f"id IN {_MEMBERS}", kept="id"),
    # Processes may have cached what a client of this gateway may do.
    MovedTable(
        "client_organizations",
        after=f"SELECT pg_notify('gateway', 'client:' || client_id) FROM client_organizations WHERE {_OWN}",
    ),
    MovedTable("people", f"client_id IN {_MEMBERS}", kept="client_id"),
    MovedTable("workspaces"),
    MovedTable("groups"),
    MovedTable("group_members"),
    MovedTable("scim_tokens"),
    MovedTable("provisioned_people"),
    MovedTable(
        "imported_kinds",
        "importing_organization = $1 OR kind IN (SELECT kind FROM connectors WHERE organization_id = $1)",
        kept="kind, version",
        batch=1,
        after="SELECT pg_notify('gateway', 'imported-kind:' || kind) FROM imported_kinds"
        " WHERE importing_organization = $1 OR kind IN (SELECT kind FROM connectors WHERE organization_id = $1)",
    ),
    MovedTable("connectors"),
    MovedTable("connector_secrets"),
    MovedTable("oauth_apps"),
    MovedTable("oauth_registrations"),
    MovedTable("trusted_issuers"),
    MovedTable("person_sessions", order="created_at, id"),
    MovedTable(
        "agent_hosts",
        "id::text IN (SELECT host_id FROM agent_grants WHERE organization_id = $1)",
        kept="id",
    ),
    MovedTable("agent_grants"),
    MovedTable("agent_refresh_tokens"),
    MovedTable(
        "tokens",
        f"""client_id IN {_MEMBERS} AND expires_at > now()
            AND (grant_id IS NULL OR grant_id IN (SELECT id FROM agent_grants WHERE organization_id = $1))
            AND (session_id IS NULL OR session_id IN (SELECT id FROM person_sessions WHERE organization_id = $1))""",
        kept="hash",
    ),
    MovedTable("policies"),
    MovedTable("policy_history"),
    MovedTable("budgets"),
    MovedTable("budget_spending"),
    MovedTable("jobs", "organization_id = $1 AND task <> 'export_organization'", order="created_at, id", batch=100),
    MovedTable("job_results", _OF_JOBS, order="job_id, part", batch=4),
    MovedTable("job_events", _OF_JOBS, order="job_id, number"),
    MovedTable("idempotency_keys"),
    MovedTable("batch_inputs", order="job_id, first_index", batch=4),
    MovedTable("approvals", batch=50),
    MovedTable("approval_decisions"),
    MovedTable("approval_notices"),
    MovedTable("schedules", batch=100),
    MovedTable("webhooks"),
    MovedTable("webhook_deliveries", batch=100),
    MovedTable("inbound_hooks"),
    MovedTable("inbound_notices"),
    MovedTable("inbound_changes"),
    MovedTable("uploads", batch=50),
    MovedTable(AUDIT, order="id"),
    MovedTable("audit_heads"),
    MovedTable("audit_checkpoints"),
    MovedTable("audit_former_keys", kept="organization_id, key_id"),
    # The rows of the audit log were counted when they were imported.
    MovedTable("usage_counts", before=f"DELETE FROM usage_counts WHERE {_OWN}"),
    MovedTable("usage_open"),
    MovedTable("usage_events", order="number"),
    MovedTable("usage_unknown"),
    # The connectors and approvals that were imported have added events.
    MovedTable("events", order="sequence", before=f"DELETE FROM events WHERE {_OWN}"),
    MovedTable("event_feeds"),
    MovedTable("request_log", order="id"),
)

_COPY = "the copy is synchronized again from the application"
_OTHER_ADDRESS = "it is bound to the address of the gateway that began it; people begin again"
_OF_ALL = "it belongs to the gateway, not to an organization"

#: the tables that stay, and why
LEFT_OUT: Mapping[str, str] = {
    "audit_chain": "its rows are moved with those of `audit`",
    "audit_unsettled": "PostgreSQL derives it from the rows of `audit`",
    "context_entities": _COPY,
    "context_records": _COPY,
    "context_marks": _COPY,
    "context_words": _COPY,
    "context_pending_words": _COPY,
    "context_terms": _COPY,
    "oauth_flows": _OTHER_ADDRESS,
    "connect_sessions": _OTHER_ADDRESS,
    "console_sessions": _OTHER_ADDRESS,
    "agent_codes": _OTHER_ADDRESS,
    "provider_sign_ins": _OTHER_ADDRESS,
    "used_assertions": "assertions name the address of the gateway for which they are issued",
    "audit_sealed": _OF_ALL,
    "workers": _OF_ALL,
    "connector_holds": "pauses last for seconds",
    "rate_pauses": "pauses last for seconds",
    "migrations": _OF_ALL,
}
