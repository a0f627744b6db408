"""The audit entry of a request under way: its route names it, its handler adds what it learns."""

from collections.abc import Mapping
from dataclasses import dataclass
from uuid import UUID

from gateway.identity.audit import Entry
from gateway.identity.model import Caller, id_of


@dataclass(slots=True)
class PendingEntry:
    """What is known so far of who does what."""

    #: None for what is no deed after all, such as a dry run
    what: str | None
    organization_id: UUID | None = None
    actor: UUID | None = None
    connector_id: UUID | None = None
    #: what else it is done to: a workspace, a job, a kind
    target: str | None = None
    intent: str | None = None
    #: where the handler knows better than the status of its response
    outcome: str | None = None

    @classmethod
    def of(cls, what: str, caller: Caller | None, path: Mapping[str, str]) -> "PendingEntry":
        """The entry of a route's request; `path` holds the variables of its path."""
        targets = (
            path[name] for name in ("workspace_id", "job_id", "connector_type", "grant_id", "client_id") if name in path
        )
        pending = cls(what, connector_id=id_of(path.get("connector_id")), target=next(targets, None))
        if caller is not None:
            pending.organization_id, pending.actor = caller.organization_id, caller.client.id
        return pending

    def ended(self, outcome: str, request_id: str, took_ms: int) -> Entry | None:
        """The entry for the log; None where nothing was done, or nothing that an organization could look up."""
        if self.what is None or self.organization_id is None:
            return None
        return Entry(
            self.organization_id,
            self.actor,
            self.what,
            self.outcome or outcome,
            connector_id=self.connector_id,
            target=self.target,
            intent=self.intent,
            request_id=request_id,
            took_ms=took_ms,
        )
