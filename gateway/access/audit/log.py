"""The audit log: who did what, when, with which outcome; written in batches in the background.

A use case that changes something, or runs an operation, does so within `Audit.record`, so that it is recorded for every
surface. A request begins an entry before, so that a refusal is recorded even if no use case was called.
"""

import time
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager, asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import datetime, timedelta
from types import TracebackType
from typing import Protocol
from uuid import UUID

import msgspec

from gateway.access.audit.activity import Activity, activity_of, last_uses_of
from gateway.access.audit.usage import USAGE, UsagePoint, usage_point, whole_step
from gateway.errors import GatewayError
from gateway.foundation.aio.clock import CLOCK
from gateway.foundation.db.batch_writer import BatchWriter
from gateway.foundation.db.pool import Database
from gateway.foundation.db.pruning import BATCH
from gateway.foundation.db.where import OF_WORKSPACES, Where

_PRUNE = "SELECT gateway_prune_audit($1, $2)"
_INSERT = """
    INSERT INTO audit (organization_id, at, actor, connector_id, kind, what, target, changed, outcome, intent,
                       request_id, took_ms)
    SELECT organization_id, to_timestamp(at), actor, connector_id, kind, what, target, changed, outcome, intent,
           request_id, took_ms
    FROM json_to_recordset($1::json) AS entry (organization_id uuid, at float8, actor uuid, connector_id uuid,
                                               kind text, what text, target text, changed text[], outcome text,
                                               intent text, request_id text, took_ms integer)
"""
_ENTRIES_WHERE = """
    SELECT audit.id, at, actor, clients.name AS actor_name, connector_id, kind, what, target, changed, outcome, intent,
           request_id, took_ms
    FROM audit LEFT JOIN clients ON clients.id = actor
    WHERE
"""
# An array and no subquery in the condition, so that the planner reads the index of each actor.
_ACTOR_NAMED = """
    actor = ANY(ARRAY(SELECT id FROM clients JOIN client_organizations ON client_id = id
                      WHERE organization_id = {} AND name = {}))
"""


class Entry(msgspec.Struct, omit_defaults=True, kw_only=True):
    """One action: the route names it, the use case sets its members, and the end of the request completes it.

    `what` is an operation or an action on a record; never params, never secrets.
    """

    #: None if nothing is recorded, such as for a dry run
    what: str | None
    organization_id: UUID | None = None
    actor: UUID | None = None
    connector_id: UUID | None = None
    #: the kind of that connector
    kind: str | None = None
    #: the id of the record, workspace, job or client that was changed
    target: str | None = None
    #: dotted names of the members that were written, never their values
    changed: list[str] | None = None
    intent: str | None = None
    #: set by the use case; by default it follows from the status of the response
    outcome: str | None = None
    request_id: str | None = None
    #: milliseconds from the request's first line to its response
    took_ms: int | None = None
    #: Unix time; None until the entry is noted
    at: float | None = None

    def end(self, outcome: str, request_id: str | None, took_ms: int) -> bool:
        """Complete the entry; false if nothing was done, or nothing for an organization."""
        if self.what is None or self.organization_id is None:
            return False
        self.outcome = self.outcome or outcome
        self.request_id, self.took_ms = request_id, took_ms
        return True


class Actor(Protocol):
    """The actor: a client acting for one organization."""

    @property
    def organization_id(self) -> UUID: ...

    @property
    def client_id(self) -> UUID: ...


class _RequestAudit(msgspec.Struct):
    """The members that all entries of a request have in common."""

    request_id: str | None = None
    #: the request's entry, until its first action uses it
    entry: Entry | None = None


_REQUEST: ContextVar[_RequestAudit | None] = ContextVar("request_audit", default=None)


def begin_request(request_id: str, what: str | None) -> Entry | None:
    """Begin a request: actions of this task, and of tasks that it starts, belong to it; the first uses its entry."""
    entry = None if what is None else Entry(what=what)
    _REQUEST.set(_RequestAudit(request_id, entry))
    return entry


class _Recording(msgspec.Struct, frozen=True):
    """A block whose outcome completes an entry; a class is faster than a generator."""

    entry: Entry
    #: stores the entry at the end of the block; None if the middleware does
    note: Callable[[Entry], None] | None
    request_id: str | None
    #: by the monotonic clock
    started: float = msgspec.field(default_factory=time.monotonic)

    def __enter__(self) -> Entry:
        return self.entry

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        entry = self.entry
        if error is None:
            entry.outcome = entry.outcome or "succeeded"
        elif isinstance(error, GatewayError):
            entry.outcome = error.code
        if self.note is None:
            return
        if entry.end("interrupted", self.request_id, round((time.monotonic() - self.started) * 1000)):
            self.note(entry)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredEntry:
    """A stored entry."""

    id: int
    at: datetime
    actor: UUID | None
    actor_name: str | None
    connector_id: UUID | None
    kind: str | None
    what: str
    target: str | None
    changed: Sequence[str] | None
    outcome: str
    intent: str | None
    request_id: str | None
    took_ms: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryFilter:
    """Selects entries of the log; None selects all."""

    connector_id: UUID | None = None
    #: a client by its id, or all clients of a name
    actor: UUID | None = None
    actor_name: str | None = None
    #: what was done: `tickets.update`, `connector.create`
    operation: str | None = None
    target: str | None = None
    outcome: str | None = None
    request_id: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    #: names of the workspaces to which the caller is limited
    workspaces: Collection[str] | None = None


class Audit:
    """The audit log of a process."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._writer = BatchWriter(database, _INSERT, "audit")

    def record(
        self,
        what: str,
        caller: Actor,
        *,
        connector_id: UUID | None = None,
        target: str | None = None,
        changed: Collection[str] = (),
        intent: str | None = None,
    ) -> AbstractContextManager[Entry]:
        """Record the action of the block with its outcome: `succeeded`, the code of an error, or what the block sets.

        The first action of a request completes the entry that the request began; the middleware stores that one after
        the response. Any further action is another entry, stored at the end of the block.
        """
        request = _REQUEST.get() or _RequestAudit()
        offered, request.entry = request.entry, None
        entry = offered or Entry(what=what)
        entry.what, entry.intent = what, intent
        entry.organization_id, entry.actor = caller.organization_id, caller.client_id
        entry.connector_id, entry.target = connector_id or entry.connector_id, target or entry.target
        entry.changed = sorted(changed) if changed else None
        return _Recording(entry, None if offered else self.note, request.request_id)

    def note(self, entry: Entry) -> None:
        """Add an entry that has ended to the next batch."""
        entry.at = entry.at or CLOCK.unix_time()
        self._writer.add(entry)

    @asynccontextmanager
    async def writing(self) -> AsyncIterator["Audit"]:
        """Write batches within the block; leaving it writes the last one."""
        async with self._writer.writing():
            yield self

    async def find(
        self,
        organization_id: UUID,
        entries: EntryFilter | None = None,
        *,
        before: int | None = None,
        limit: int = 100,
    ) -> Sequence[StoredEntry]:
        """Matching entries of one organization, newest first."""
        entries = entries or EntryFilter()
        after_entry = (organization_id, before, before)
        where = Where()
        where.add("organization_id = {}", organization_id)
        where.add("connector_id = {}", entries.connector_id)
        where.add(OF_WORKSPACES, entries.workspaces)
        where.add("actor = {}", entries.actor)
        where.add(_ACTOR_NAMED, organization_id, entries.actor_name)
        where.add("what = {}", entries.operation)
        where.add("target = {}", entries.target)
        where.add("outcome = {}", entries.outcome)
        where.add("request_id = {}", entries.request_id)
        where.add("at >= {}", entries.since)
        where.add("at < {}", entries.until)
        where.add("(at, audit.id) < ((SELECT at FROM audit WHERE organization_id = {} AND id = {}), {})", *after_entry)
        find = f"{_ENTRIES_WHERE} {where.text} ORDER BY at DESC, audit.id DESC LIMIT {where.argument(limit)}"
        async with self._database.tenant(organization_id) as connection:
            rows = await connection.fetch(find, *where.arguments)
        return [StoredEntry(**row) for row in rows]

    async def activity(self, organization_id: UUID, connector_ids: Sequence[UUID]) -> Mapping[UUID, Activity]:
        """When each connector was last used, and how often calls of it failed in the last hour."""
        return await activity_of(self._database, organization_id, connector_ids)

    async def last_uses(self, organization_id: UUID, client_ids: Sequence[UUID]) -> Mapping[UUID, datetime | None]:
        """When each client last did something that was recorded."""
        return await last_uses_of(self._database, organization_id, client_ids)

    async def usage(self, organization_id: UUID, since: datetime, step: int) -> Sequence[UsagePoint]:
        """Calls, errors and their duration from then to now, a point for each step (seconds) as `whole_step` has it."""
        span, seconds = whole_step(step)
        async with self._database.tenant(organization_id) as connection:
            rows = await connection.fetch(USAGE, organization_id, span, since, timedelta(seconds=seconds))
        return [usage_point(row) for row in rows]


async def prune_audit(database: Database, retention: int) -> int:
    """Delete entries older than `retention` seconds, at least a day, in batches; returns their number."""
    total = 0
    while True:
        async with database.system() as connection:
            deleted: int = await connection.fetchval(_PRUNE, timedelta(seconds=retention), BATCH)
        total += deleted
        if deleted < BATCH:
            return total
