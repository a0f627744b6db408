"""Who did what, when, with which outcome: written in batches, off the path of the calls it tells of."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from uuid import UUID

from gateway.background import ended
from gateway.db.pool import Database
from gateway.errors import Unavailable

log = logging.getLogger(__name__)

#: seconds between batches, and entries kept while PostgreSQL is away
_INTERVAL, _KEPT = 0.5, 50_000

_INSERT = """
    INSERT INTO audit (organization_id, at, actor, connector_id, what, outcome, intent, request_id)
    SELECT * FROM unnest($1::uuid[], $2::timestamptz[], $3::uuid[], $4::uuid[], $5::text[], $6::text[], $7::text[],
                         $8::text[])
"""
_FIND = """
    SELECT id, at, actor, connector_id, what, outcome, intent, request_id FROM audit
    WHERE organization_id = $1
      AND ($2::uuid IS NULL OR connector_id = $2)
      AND ($3::uuid IS NULL OR actor = $3)
      AND ($4::timestamptz IS NULL OR at >= $4)
      AND ($5::timestamptz IS NULL OR at < $5)
      AND ($6::bigint IS NULL OR id < $6)
    ORDER BY id DESC
    LIMIT $7
"""

_COLUMNS = ("organization_id", "at", "actor", "connector_id", "what", "outcome", "intent", "request_id")


def _storable(value: object) -> object:
    """PostgreSQL has no word for NUL, and one entry that it refuses would take its whole batch along."""
    return value.replace("\x00", "\N{REPLACEMENT CHARACTER}") if isinstance(value, str) else value


@dataclass(frozen=True, slots=True)
class Entry:
    """One deed. `what` is an operation or an action on a record; never params, never secrets."""

    organization_id: UUID
    actor: UUID | None
    what: str
    outcome: str
    connector_id: UUID | None = None
    intent: str | None = None
    request_id: str | None = None
    at: datetime = field(default_factory=lambda: datetime.now(UTC))


@dataclass(frozen=True, slots=True)
class StoredEntry:
    """An entry as the log keeps it."""

    id: int
    at: datetime
    actor: UUID | None
    connector_id: UUID | None
    what: str
    outcome: str
    intent: str | None
    request_id: str | None


class Audit:
    """The audit log of a process."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._pending: list[Entry] = []

    def note(self, entry: Entry) -> None:
        """Take an entry down; it reaches PostgreSQL with the next batch."""
        if len(self._pending) >= _KEPT:
            log.error("audit entries are dropped: PostgreSQL has been away for too long")
            return
        self._pending.append(entry)

    @asynccontextmanager
    async def writing(self) -> AsyncIterator["Audit"]:
        """Batches are written for as long as the block lasts, the last one at its end."""
        task = asyncio.create_task(self._write_batches(), name="write the audit log")
        try:
            yield self
        finally:
            await ended(task)
            with contextlib.suppress(Unavailable):
                await self._write()

    async def _write_batches(self) -> None:
        while True:
            await asyncio.sleep(_INTERVAL)
            try:
                await self._write()
            except Unavailable:
                log.warning("the audit log waits for PostgreSQL", extra={"entries": len(self._pending)})

    async def _write(self) -> None:
        batch = self._pending
        if not batch:
            return
        self._pending = []
        columns = [[_storable(getattr(entry, name)) for entry in batch] for name in _COLUMNS]
        try:
            async with self._database.system() as connection:
                await connection.execute(_INSERT, *columns)
        except Unavailable:
            self._pending = batch + self._pending
            raise

    async def find(
        self,
        organization_id: UUID,
        *,
        connector_id: UUID | None = None,
        actor: UUID | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        before: int | None = None,
        limit: int = 100,
    ) -> Sequence[StoredEntry]:
        """Entries of one organization, the newest first."""
        async with self._database.tenant(organization_id) as connection:
            rows = await connection.fetch(_FIND, organization_id, connector_id, actor, since, until, before, limit)
        return [StoredEntry(**row) for row in rows]
