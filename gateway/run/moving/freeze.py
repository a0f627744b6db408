"""Refuses an organization's writes while it is moved, and waits for its work in progress."""

import asyncio
from dataclasses import dataclass, field
from uuid import UUID

from gateway.errors import Conflict
from gateway.foundation.db.pool import Connection, Database

#: seconds for which a front end may still accept writes: it trusts a verified token, and writes its log in batches
_TRUSTED = 6.0
#: seconds for which running jobs may finish by default; export and import have the rest of a minute
PATIENCE = 40.0
_INTERVAL = 0.25

# Whether the writes are refused for an earlier export, whose file may have been imported.
_IS_FROZEN = """
    SELECT moving_since IS NOT NULL AND (moving_job = $2) IS NOT TRUE AND NOT EXISTS (
        SELECT FROM jobs WHERE jobs.id = moving_job AND status IN ('failed', 'canceled', 'unknown'))
    FROM organizations WHERE id = $1 FOR UPDATE
"""
_FREEZE = """
    UPDATE organizations SET moving_since = COALESCE(moving_since, now()), moving_job = $2 WHERE id = $1 RETURNING id
"""
_THAW = "UPDATE organizations SET moving_since = NULL, moving_job = NULL WHERE id = $1 RETURNING id"
# Of jobs that ended without a file.
_THAW_STRANDED = """
    UPDATE organizations SET moving_since = NULL, moving_job = NULL
    WHERE moving_since IS NOT NULL
      AND EXISTS (SELECT FROM jobs WHERE jobs.id = moving_job AND status IN ('failed', 'canceled', 'unknown'))
    RETURNING id
"""
_NOTIFY = """
    SELECT pg_notify('gateway', 'client:' || client_id) FROM client_organizations WHERE organization_id = ANY ($1)
"""
_RUNNING = """
    SELECT id FROM jobs WHERE organization_id = $1 AND status = 'running' AND id IS DISTINCT FROM $2
    ORDER BY started_at LIMIT 5
"""
# Calls whose outcome is not recorded a minute after they began have lost it.
_WRITING = """
    SELECT count(*) FROM audit_unsettled JOIN audit ON audit.id = audit_id
    WHERE audit_unsettled.organization_id = $1 AND at > now() - interval '1 minute'
"""


@dataclass(slots=True)
class Freeze:
    """The writes of an organization."""

    database: Database
    organization_id: UUID
    #: the job that exports it
    job_id: UUID | None = None
    #: whether this export refuses the writes, and no earlier one does
    _is_own: bool = field(default=False, init=False)

    async def begin(self, patience: float = PATIENCE) -> None:
        """Refuse writes, and wait until nothing is written. Queued jobs stay in the queue.

        Raises Conflict, as `abandon` leaves it, if jobs still run after `patience` seconds.
        """
        try:
            await self._refuse_writes()
            loop = asyncio.get_running_loop()
            earliest, latest = loop.time() + _TRUSTED, loop.time() + max(patience, _TRUSTED)
            while loop.time() < earliest or await self._is_busy():
                if loop.time() >= latest:
                    await self._require_no_jobs()
                    return
                await asyncio.sleep(_INTERVAL)
        except BaseException:
            await self.abandon()
            raise

    async def _refuse_writes(self) -> None:
        async with self.database.system() as connection, connection.transaction():
            frozen = await connection.fetchval(_IS_FROZEN, self.organization_id, self.job_id)
            self._is_own = not frozen
            if self._is_own:
                await _change(connection, _FREEZE, self.organization_id, self.job_id)

    async def end(self) -> None:
        """Allow writes again."""
        await _changed(self.database, _THAW, self.organization_id)

    async def abandon(self) -> None:
        """Allow writes again if they were refused by `begin`, and not for an earlier export."""
        if self._is_own:
            await self.end()

    async def _is_busy(self) -> bool:
        async with self.database.tenant(self.organization_id) as connection:
            return bool(
                await connection.fetch(_RUNNING, self.organization_id, self.job_id)
                or await connection.fetchval(_WRITING, self.organization_id)
            )

    async def _require_no_jobs(self) -> None:
        async with self.database.tenant(self.organization_id) as connection:
            rows = await connection.fetch(_RUNNING, self.organization_id, self.job_id)
            running = [str(row["id"]) for row in rows]
        if running:
            now = "Writes are allowed again" if self._is_own else "Writes stay refused because of an earlier export"
            raise Conflict(
                f"jobs still run: {', '.join(running)}. {now}; wait for these jobs or cancel them, and export again"
            )


async def thaw_stranded(database: Database) -> None:
    """Allow writes again of organizations whose export ended without a file."""
    await _changed(database, _THAW_STRANDED)


async def _changed(database: Database, statement: str, *arguments: object) -> None:
    """Run the statement, and tell every process whose organizations it returns."""
    async with database.system() as connection, connection.transaction():
        await _change(connection, statement, *arguments)


async def _change(connection: Connection, statement: str, *arguments: object) -> None:
    organizations = [row["id"] for row in await connection.fetch(statement, *arguments)]
    await connection.execute(_NOTIFY, organizations)
