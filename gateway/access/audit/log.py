"""The audit log: who did what, when, with which outcome.

A use case that changes something, or runs an operation, does so within `Audit.record`, so that it is recorded for every
surface. A request begins an entry before, so that a refusal is recorded even if no use case was called.

A write to an application has two entries: the intent is committed before it is sent, and the settlement before it is
answered. The statement that stores the result of a job, or of an operation of a batch, also stores its entry. Other
entries are written in batches in the background. That of a read is in a file before it is sent, so that a killed
process leaves it to the others.
"""

from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import AbstractContextManager, asynccontextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import msgspec
from msgspec.structs import replace

from gateway.access.audit.activity import Activity, Cause, activity_of, causes_of, last_uses_of
from gateway.access.audit.entry import INSERT_ENTRIES, INTERRUPTED, UNKNOWN, Actor, Entry, recording
from gateway.access.audit.recent_calls import RecentCalls, calls_between
from gateway.access.audit.usage import (
    COUNT,
    LATEST_CALLS,
    MAX_READ,
    MAX_SHARES,
    USAGE,
    UsagePoint,
    UsageShare,
    UsageShares,
    points_of_statement,
    points_statement,
    shares_statement,
    usage_point,
    usage_share,
    usage_shares,
    whole_step,
)
from gateway.errors import FieldError, InvalidParams
from gateway.foundation.aio.clock import CLOCK
from gateway.foundation.db.batch_writer import BatchWriter, Spool
from gateway.foundation.db.pool import Connection, Database
from gateway.foundation.db.pruning import BATCH
from gateway.foundation.db.where import OF_WORKSPACES, Where

#: the calls that recent ones are read from, and their combinations
_RECENT_ENTRIES, _RECENT_ROWS = 100_000, 1000
_PRUNE = "SELECT gateway_prune_audit($1, $2)"
# A trigger counts entries without a `call_id` and accepted jobs; other statements count writes and the ends of jobs.
_INSERT_NOTED = f"""
    WITH noted AS ({INSERT_ENTRIES} RETURNING organization_id, at, outcome, took_ms, entry_kind, call_id)
    SELECT gateway_count_calls(array_agg(organization_id), array_agg(at), array_agg(outcome), array_agg(took_ms))
    FROM noted WHERE call_id IS NOT NULL AND entry_kind = 'event' AND outcome <> 'accepted' HAVING count(*) > 0
"""
#: the ids and names of those who approved the call of an entry: a JSON array, or null
APPROVERS = """
    (SELECT json_agg(json_build_object('id', approver, 'name', clients.name) ORDER BY place)::text
     FROM unnest(audit.approved_by) WITH ORDINALITY AS approvers (approver, place)
     LEFT JOIN clients ON clients.id = approver)
"""
_ENTRIES_WHERE = f"""
    SELECT audit.id, at, actor, clients.name AS actor_name,
           EXISTS (SELECT FROM people WHERE people.client_id = actor) AS is_person,
           acting_client, acting.name AS acting_name, session_id, connector_id, kind, what, target, changed,
           COALESCE(outcome, 'unknown') AS outcome, intent, request_id, took_ms, policies, approval_id,
           effect, {APPROVERS} AS approvers
    FROM audit LEFT JOIN clients ON clients.id = actor LEFT JOIN clients AS acting ON acting.id = acting_client
    WHERE
"""
# An intent is shown until its settlement is stored.
_NOT_SETTLED = "(outcome IS NOT NULL OR EXISTS (SELECT FROM audit_unsettled WHERE audit_id = audit.id))"
# An array and no subquery in the condition, so that the planner reads the entries by their ids.
_UNSETTLED = """
    audit.id = ANY(ARRAY(SELECT audit_id FROM audit_unsettled WHERE organization_id = {} ORDER BY audit_id DESC
                         LIMIT 10000))
"""
# An array and no subquery in the condition, so that the planner reads the index of each actor.
_ACTOR_NAMED = """
    actor = ANY(ARRAY(SELECT id FROM clients JOIN client_organizations ON client_id = id
                      WHERE organization_id = {} AND name = {}))
"""


class _CountedCall(msgspec.Struct):
    """A call for the counts of usage."""

    organization_id: UUID
    #: Unix time
    at: float
    outcome: str | None
    took_ms: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredEntry:
    """A stored entry."""

    id: int
    at: datetime
    actor: UUID | None
    actor_name: str | None
    is_person: bool
    acting_client: UUID | None
    acting_name: str | None
    session_id: UUID | None
    connector_id: UUID | None
    kind: str | None
    what: str
    target: str | None
    changed: Sequence[str] | None
    outcome: str
    intent: str | None
    request_id: str | None
    took_ms: int | None
    policies: Sequence[str] | None
    approval_id: UUID | None
    effect: str | None
    #: a JSON array of `{id, name}`
    approvers: str | None


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

    def __init__(self, database: Database, spool: Path | None = None) -> None:
        self._database = database
        self._calls = BatchWriter(database, COUNT, "usage")
        self._writer = BatchWriter(
            database, _INSERT_NOTED, "audit", None if spool is None else Spool(spool, _with_call_id)
        )

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
        return recording(
            what, caller, self.note, connector_id=connector_id, target=target, changed=changed, intent=intent
        )

    def begin_read(self, entry: Entry) -> None:
        """Keep the entry of a read that is about to be sent: it is stored as interrupted if this process is killed."""
        entry.begun = entry.call_id = uuid4()
        self._writer.begin(replace(entry, outcome=INTERRUPTED, at=CLOCK.unix_time()), entry.begun)

    def promote_read(self, entry: Entry) -> UUID:
        """The read may go on as a job, of which this is the id; until `forget_read`, its entry is the job's settlement.

        So a read has one entry, whenever this process is killed: PostgreSQL stores one settlement of a call, and none
        of what was interrupted while the job is there.
        """
        begun, job_id = entry.begun, uuid4()
        entry.begun, entry.entry_kind = job_id, "settlement"
        entry.call_id = job_id
        self._writer.begin(replace(entry, outcome=INTERRUPTED, at=CLOCK.unix_time()), job_id, begun)
        return job_id

    def forget_read(self, entry: Entry) -> None:
        """The read goes on as a job, at whose end it has an entry."""
        if entry.begun is not None:
            self._writer.drop(entry.begun)
            entry.begun = entry.call_id = None
            entry.entry_kind = "event"

    def note(self, entry: Entry) -> None:
        """Add an entry that has ended to the next batch."""
        entry.at = entry.at or CLOCK.unix_time()
        self._writer.add(entry, is_urgent=entry.changed is not None, id_=entry.begun)

    def count(self, entry: Entry) -> None:
        """Count the call of an entry that another statement stores."""
        if entry.organization_id is not None:
            self._calls.add(_CountedCall(entry.organization_id, CLOCK.unix_time(), entry.outcome, entry.took_ms))

    @asynccontextmanager
    async def writing(self) -> AsyncIterator["Audit"]:
        """Write batches within the block; leaving it writes the last one, to a file if PostgreSQL is unavailable."""
        async with self._writer.writing(), self._calls.writing():
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
        return (await self.find_as_of(organization_id, entries, before=before, limit=limit))[0]

    async def find_as_of(
        self,
        organization_id: UUID,
        entries: EntryFilter | None = None,
        *,
        before: int | None = None,
        limit: int = 100,
    ) -> tuple[Sequence[StoredEntry], datetime | None]:
        """The entries of `find`, and the time of which they are, if a replica was read.

        They may be older than the request: entries are stored some time after what they record.
        """
        selected = entries or EntryFilter()

        async def read(connection: Connection) -> list[StoredEntry]:
            found = await _found(connection, organization_id, selected, before, limit)
            if selected.outcome == UNKNOWN:
                found += await _found(connection, organization_id, selected, before, limit, are_unsettled=True)
                found.sort(key=lambda entry: (entry.at, entry.id), reverse=True)
            return found[:limit]

        return await self._database.read(organization_id, read, is_current=False)

    async def activity(self, organization_id: UUID, connector_ids: Sequence[UUID]) -> Mapping[UUID, Activity]:
        """When each connector was last used, and how often calls of it failed in the last hour."""
        return await activity_of(self._database, organization_id, connector_ids)

    async def last_uses(self, organization_id: UUID, client_ids: Sequence[UUID]) -> Mapping[UUID, datetime | None]:
        """When each client last did something that was recorded."""
        return await last_uses_of(self._database, organization_id, client_ids)

    async def causes(
        self,
        organization_id: UUID,
        since: datetime,
        workspaces: Collection[str] | None,
        person_id: UUID | None,
        limit: int,
    ) -> Sequence[Cause]:
        """Why calls have failed since then, by error code and connector, the most frequent first."""
        return await causes_of(self._database, organization_id, since, workspaces, person_id, limit)

    async def recent_calls(self, organization_id: UUID) -> Sequence[RecentCalls]:
        """The latest 100,000 calls of the last day by client, connector and operation, the 1,000 most frequent."""
        now = CLOCK.now()
        since = now - timedelta(days=1)
        return await calls_between(
            self._database, organization_id, since, now, entries=_RECENT_ENTRIES, combinations=_RECENT_ROWS
        )

    async def calls_between(self, organization_id: UUID, since: datetime, until: datetime) -> Sequence[RecentCalls]:
        """All calls of that time by client, connector and operation, the most frequent first."""
        return await calls_between(self._database, organization_id, since, until)

    async def usage(
        self, organization_id: UUID, since: datetime, step: int, workspaces: Collection[str] | None = None
    ) -> Sequence[UsagePoint]:
        """Calls, errors and their duration from then to now, a point for each step (seconds) as `whole_step` has it.

        The calls of `workspaces` are read one by one: raises InvalidParams if they are too many.
        """
        span, seconds = whole_step(step)
        interval = timedelta(seconds=seconds)
        async with self._database.tenant(organization_id) as connection:
            if workspaces is None:
                rows = await connection.fetch(USAGE, organization_id, span, since, interval)
                return [usage_point(row) for row in rows]
            statement, arguments = points_statement(is_limited=True), (list(workspaces), MAX_READ + 1, interval)
            rows = await connection.fetch(statement, organization_id, since, *arguments)
        return _points(rows)

    async def usage_of(
        self, organization_id: UUID, since: datetime, step: int, of: str, id_: UUID
    ) -> Sequence[UsagePoint]:
        """As `usage`, of one `connector`, or of one `client` outside of its sessions."""
        _, seconds = whole_step(step)
        async with self._database.tenant(organization_id) as connection:
            rows = await connection.fetch(
                points_of_statement(of), organization_id, since, id_, MAX_READ + 1, timedelta(seconds=seconds)
            )
        return _points(rows)

    async def usage_by(
        self,
        organization_id: UUID,
        since: datetime,
        by: str,
        workspaces: Collection[str] | None = None,
        seen_by: UUID | None = None,
    ) -> Sequence[UsageShare]:
        """Calls and errors of each client, person, connector or workspace, the busiest first, 1,000 at most.

        `seen_by` is a caller that sees neither other people nor their connectors; None for an administrator. Raises
        InvalidParams if there are too many calls to be read one by one.
        """
        rows = await self._shares(organization_id, since, by, workspaces, MAX_READ + 1, seen_by, MAX_SHARES)
        _require_few(rows)
        return [usage_share(row) for row in rows]

    async def busiest(
        self,
        organization_id: UUID,
        since: datetime,
        by: str,
        workspaces: Collection[str] | None = None,
        seen_by: UUID | None = None,
        limit: int = MAX_SHARES,
    ) -> UsageShares:
        """As `usage_by`, so many of the busiest and the others together, of the latest calls if there are many.

        The calls of `workspaces` are not read in the order of time: raises InvalidParams if they are too many.
        """
        calls = LATEST_CALLS if workspaces is None else MAX_READ + 1
        rows = await self._shares(organization_id, since, by, workspaces, calls, seen_by, limit)
        _require_few(rows)
        return usage_shares(rows, calls)

    async def _shares(
        self,
        organization_id: UUID,
        since: datetime,
        by: str,
        workspaces: Collection[str] | None,
        calls: int,
        seen_by: UUID | None,
        limit: int,
    ) -> Sequence[Any]:
        """The rows of `shares_statement`, which reads so many calls at most."""
        statement = shares_statement(by, is_limited=workspaces is not None)
        names = None if workspaces is None else list(workspaces)
        async with self._database.tenant(organization_id) as connection:
            rows: Sequence[Any] = await connection.fetch(
                statement, organization_id, since, names, calls, seen_by, limit
            )
        return rows


async def _found(
    connection: Connection,
    organization_id: UUID,
    entries: EntryFilter,
    before: int | None,
    limit: int,
    *,
    are_unsettled: bool = False,
) -> list[StoredEntry]:
    """Matching entries; `are_unsettled` selects the intents without a settlement instead of the outcome."""
    after_entry = (organization_id, before, before)
    where = Where()
    where.add("organization_id = {}", organization_id)
    where.add("connector_id = {}", entries.connector_id)
    where.add(OF_WORKSPACES, entries.workspaces)
    where.add("actor = {}", entries.actor)
    where.add(_ACTOR_NAMED, organization_id, entries.actor_name)
    where.add("what = {}", entries.operation)
    where.add("target = {}", entries.target)
    if are_unsettled:
        where.add(_UNSETTLED, organization_id)
    else:
        where.add("outcome = {}", entries.outcome)
    where.add("request_id = {}", entries.request_id)
    where.add("at >= {}", entries.since)
    where.add("at < {}", entries.until)
    where.add("(at, audit.id) < ((SELECT at FROM audit WHERE organization_id = {} AND id = {}), {})", *after_entry)
    where.add(_NOT_SETTLED)
    find = f"{_ENTRIES_WHERE} {where.text} ORDER BY at DESC, audit.id DESC LIMIT {where.argument(limit)}"
    return [StoredEntry(**row) for row in await connection.fetch(find, *where.arguments)]


def _points(rows: Sequence[Any]) -> Sequence[UsagePoint]:
    _require_few(rows)
    return [UsagePoint(**{name: row[name] for name in UsagePoint.__slots__}) for row in rows]


def _require_few(rows: Sequence[Any]) -> None:
    if rows and rows[0]["read"] > MAX_READ:
        message = f"since: more than {MAX_READ:,} calls since then; ask for a later since"
        raise InvalidParams(faults=[FieldError("/since", "since", "too_many", message)])


def _with_call_id(row: dict[str, Any]) -> dict[str, Any]:
    """The row with an id, by which it is stored once even if its file is read twice."""
    return {"call_id": str(uuid4()), **row}


async def prune_audit(database: Database, retention: int) -> int:
    """Delete entries older than `retention` seconds, at least a day, in batches; returns their number."""
    total = 0
    while True:
        async with database.system() as connection:
            deleted: int = await connection.fetchval(_PRUNE, timedelta(seconds=retention), BATCH)
        total += deleted
        if deleted < BATCH:
            return total
