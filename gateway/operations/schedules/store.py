"""Schedules in PostgreSQL; the tenant is an argument of every look-up."""

import json
from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from gateway.access.identity.model import Caller
from gateway.contract.exports import FileFormat, OutputView
from gateway.contract.schedules import CatchUp, Overlap, ScheduleDefinition
from gateway.errors import Conflict, NotFound
from gateway.foundation.aio.turns import mapped
from gateway.foundation.db.page_bytes import page_of_rows
from gateway.foundation.db.pool import Connection, Database
from gateway.foundation.db.where import Where
from gateway.foundation.vault.vault import Sealed, Vault
from gateway.operations.schedules.model import REMEMBERED_RUNS, Schedule, binding
from gateway.operations.schedules.slots import DueSlot, paused_reason

#: maximum schedules of an organization
_MAX = 10_000
#: members of a definition that are stored in one column
_SELECTION = ("select_fields", "exclude_fields")

_COLUMNS = """
    schedules.id, schedules.organization_id, schedules.client_id, schedules.connector_id, schedules.workspace_name,
    schedules.kind, schedules.name, entity, action, selection, file, key_id, wrapped_key, sealed, cron, timezone,
    is_enabled, overlap, catch_up, labels::text AS labels, next_run_at, last_run_at, job_ids, missed_at, missed_reason,
    schedules.created_at, schedules.updated_at,
    connectors.status AS connector_status, connectors.status_reason, connectors.deleted_at IS NOT NULL AS is_deleted
"""
_FROM = "FROM schedules LEFT JOIN connectors ON connectors.id = schedules.connector_id"
_OWNED = "(schedules.owner_id IS NULL OR schedules.owner_id = {}::uuid)"
# Of the caller's workspaces, and of shared connectors or those of the caller's person.
_SEES = f"""
    schedules.organization_id = $1 AND ($2::text[] IS NULL OR schedules.workspace_name = ANY ($2))
    AND {_OWNED.format("$3")}
"""
# Locks the organization's row, so that concurrent requests do not exceed the limit together.
_LOCK_ORGANIZATION = "SELECT FROM organizations WHERE id = $1 FOR NO KEY UPDATE"
_COUNT = "SELECT count(*) FROM schedules WHERE organization_id = $1"
_INSERT = """
    INSERT INTO schedules (id, organization_id, client_id, connector_id, workspace_name, kind, name, entity, action,
                           selection, key_id, wrapped_key, sealed, cron, timezone, is_enabled, overlap, catch_up,
                           labels, next_run_at, file)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19::jsonb, $20, $21)
    ON CONFLICT (id) DO NOTHING RETURNING id
"""
_UPDATE = """
    UPDATE schedules
    SET client_id = $3, connector_id = $4, workspace_name = $5, kind = $6, name = $7, entity = $8, action = $9,
        selection = $10, key_id = $11, wrapped_key = $12, sealed = $13, cron = $14, timezone = $15, is_enabled = $16,
        overlap = $17, catch_up = $18, labels = $19::jsonb, next_run_at = $20, file = $21, updated_at = now()
    WHERE id = $1 AND organization_id = $2
"""
_GET = f"SELECT {_COLUMNS} {_FROM} WHERE {_SEES} AND schedules.id = $4"
_LOCK = f"SELECT id FROM schedules WHERE {_SEES} AND id = $4 FOR NO KEY UPDATE"
_LIST = f"SELECT {_COLUMNS} {_FROM} WHERE"
#: columns whose values may be large
_WIDE = ("sealed", "selection", "labels")
_DELETE = f"DELETE FROM schedules WHERE {_SEES} AND id = $4 RETURNING id"
_ADD_RUN = f"""
    UPDATE schedules SET job_ids = (ARRAY[$3::uuid] || job_ids)[1:{REMEMBERED_RUNS}], last_run_at = now()
    WHERE organization_id = $1 AND id = $2
"""
# With `overlap: queue`, a slot is not due until the previous run has ended.
_IS_RUNNING = """
    EXISTS (
        SELECT FROM jobs WHERE jobs.id = ANY (schedules.job_ids) AND jobs.status IN ('queued', 'running', 'waiting'))
"""
# Slots of an organization that is being moved are due in its new database.
_IS_DUE = f"""
    next_run_at <= now() AND NOT (overlap = 'queue' AND {_IS_RUNNING})
    AND schedules.organization_id <> ALL (ARRAY(SELECT id FROM organizations WHERE moving_since IS NOT NULL))
"""
# The order makes the planner use the index, with any statistics of the table.
_ANY_DUE = f"SELECT EXISTS (SELECT FROM schedules WHERE {_IS_DUE} ORDER BY next_run_at LIMIT 1)"
# Organizations take turns, so that many slots of one do not delay the others'. Concurrent workers lock different rows,
# and a row is locked until the transaction has accepted its job.
_LOCK_DUE = f"""
    SELECT {_COLUMNS}, now() AS now, organizations.disabled_at IS NOT NULL AS is_disabled, {_IS_RUNNING} AS is_running,
        (SELECT max(finished_at) FROM jobs WHERE jobs.id = ANY (schedules.job_ids)) AS last_finished_at
    {_FROM} JOIN organizations ON organizations.id = schedules.organization_id JOIN (
        SELECT id, row_number() OVER (PARTITION BY organization_id ORDER BY next_run_at) AS turn
        FROM schedules WHERE {_IS_DUE}
    ) AS due ON due.id = schedules.id
    WHERE {_IS_DUE} AND schedules.key_id <> ALL ($2::text[])
    ORDER BY turn, next_run_at LIMIT $1 FOR NO KEY UPDATE OF schedules SKIP LOCKED
"""
_MOVE_ON = f"""
    UPDATE schedules
    SET next_run_at = moved.next_run_at,
        last_run_at = CASE WHEN reason IS NULL THEN now() ELSE last_run_at END,
        job_ids = CASE WHEN reason IS NULL THEN (ARRAY[job_id] || job_ids)[1:{REMEMBERED_RUNS}] ELSE job_ids END,
        missed_at = CASE WHEN reason IS NULL THEN missed_at ELSE slot END,
        missed_reason = COALESCE(reason, missed_reason)
    FROM unnest($1::uuid[], $2::timestamptz[], $3::timestamptz[], $4::uuid[], $5::text[])
        AS moved (id, slot, next_run_at, job_id, reason)
    WHERE schedules.id = moved.id AND schedules.next_run_at = slot
    RETURNING schedules.id
"""
_MISS = """
    UPDATE schedules
    SET missed_at = next_run_at, missed_reason = $3, next_run_at = $2, is_enabled = $2::timestamptz IS NOT NULL
    WHERE id = $1
"""


@dataclass(frozen=True, slots=True)
class SlotOutcome:
    """The outcome of a slot: run or missed."""

    due: DueSlot
    next_run_at: datetime
    #: why it is not run; None if it is
    reason: str | None


class ScheduleStore:
    """Schedules with sealed params."""

    def __init__(self, database: Database, vault: Vault) -> None:
        self._database = database
        self._vault = vault

    async def insert(self, schedule: Schedule) -> bool:
        """Insert a schedule unless its id is stored; whether it is new. Raises Conflict if the organization has the
        maximum number.
        """
        async with self._database.tenant(schedule.organization_id) as connection, connection.transaction():
            await connection.execute(_LOCK_ORGANIZATION, schedule.organization_id)
            if await connection.fetchval(_COUNT, schedule.organization_id) >= _MAX:
                raise Conflict(f"the organization has {_MAX} schedules, the most it may have; delete some")
            return await connection.fetchval(_INSERT, *self._values(schedule)) is not None

    async def get(self, caller: Caller, schedule_id: UUID) -> Schedule:
        """The schedule; raises NotFound, also if the caller may not see it."""
        async with self._database.tenant(caller.organization_id) as connection:
            return self._found(await connection.fetchrow(_GET, *_seen_by(caller), schedule_id))

    async def page(
        self,
        caller: Caller,
        after: tuple[datetime, UUID] | None,
        limit: int,
        connector_id: UUID | None = None,
        client_id: UUID | None = None,
    ) -> tuple[Sequence[Schedule], bool]:
        """Schedules, oldest first, as many as a page has, and whether more follow."""
        where = Where()
        where.add("schedules.organization_id = {}", caller.organization_id)
        where.add("schedules.workspace_name = ANY ({}::text[])", caller.client.workspaces)
        where.require(_OWNED, caller.person_id)
        where.add("schedules.connector_id = {}", connector_id)
        where.add("schedules.client_id = {}", client_id)
        where.add("(schedules.created_at, schedules.id) > ({}, {})", *(after or (None, None)))
        order = "ORDER BY schedules.created_at, schedules.id"
        async with self._database.tenant(caller.organization_id) as connection:
            query = f"{_LIST} {where.text} {order} LIMIT {where.argument(limit + 1)}"
            rows, has_more = await page_of_rows(connection, query, where.arguments, _WIDE, limit)
        return await mapped(self._schedule, rows), has_more

    @asynccontextmanager
    async def locked(self, caller: Caller, schedule_id: UUID) -> AsyncIterator[tuple[Connection, Schedule]]:
        """Lock the schedule until the block's transaction ends; raises NotFound."""
        async with self._database.tenant(caller.organization_id) as connection, connection.transaction():
            await connection.execute(_LOCK, *_seen_by(caller), schedule_id)
            yield connection, self._found(await connection.fetchrow(_GET, *_seen_by(caller), schedule_id))

    async def update_within(self, connection: Connection, schedule: Schedule) -> None:
        """Update the schedule in the caller's transaction."""
        await connection.execute(_UPDATE, *self._values(schedule))

    async def add_run_within(self, connection: Connection, schedule: Schedule, job_id: UUID) -> None:
        """Add a run in the caller's transaction."""
        await connection.execute(_ADD_RUN, schedule.organization_id, schedule.id, job_id)

    async def delete(self, caller: Caller, schedule_id: UUID) -> None:
        """Delete the schedule; raises NotFound."""
        async with self._database.tenant(caller.organization_id) as connection:
            if await connection.fetchval(_DELETE, *_seen_by(caller), schedule_id) is None:
                raise _no_schedule()

    async def is_any_due(self) -> bool:
        """Whether a slot of any organization is due."""
        async with self._database.system() as connection:
            return bool(await connection.fetchval(_ANY_DUE))

    async def lock_due_within(self, connection: Connection, limit: int) -> tuple[Sequence[Any], datetime | None]:
        """Lock due slots of all organizations until the transaction ends.

        Returns the rows for `due_of`, with `next_run_at`, the slot, and PostgreSQL's time. Schedules whose key is
        forgotten wait.
        """
        rows = await connection.fetch(_LOCK_DUE, limit, self._vault.forgotten)
        return rows, rows[0]["now"] if rows else None

    async def move_on_within(self, connection: Connection, outcomes: Sequence[SlotOutcome]) -> Collection[UUID]:
        """Store the outcomes of locked slots; returns the ids of the schedules whose slot had not changed."""
        if not outcomes:
            return set()
        columns = zip(*map(_moved, outcomes), strict=True)
        return {row["id"] for row in await connection.fetch(_MOVE_ON, *map(list, columns))}

    async def miss_within(
        self, connection: Connection, schedule_id: UUID, next_run_at: datetime | None, reason: str
    ) -> None:
        """Let a locked slot pass whose schedule cannot be run; without a next slot, the schedule is disabled."""
        await connection.execute(_MISS, schedule_id, next_run_at, reason)

    def _found(self, row: Any) -> Schedule:
        if row is None:
            raise _no_schedule()
        return self._schedule(row)

    def _values(self, schedule: Schedule) -> tuple[Any, ...]:
        """The row, in the order of `_INSERT` and `_UPDATE`."""
        definition = schedule.definition
        params = {"params": json.dumps(dict(definition.params))}
        sealed = self._vault.seal(params, binding(schedule.organization_id, schedule.id))
        return (
            schedule.id,
            schedule.organization_id,
            schedule.client_id,
            definition.connector_id,
            schedule.workspace_name,
            schedule.kind,
            definition.name,
            definition.entity,
            definition.action,
            json.dumps({name: paths for name in _SELECTION if (paths := getattr(definition, name)) is not None}),
            sealed.key_id,
            sealed.wrapped_key,
            sealed.sealed,
            definition.cron,
            definition.timezone,
            definition.enabled,
            definition.overlap,
            definition.catch_up,
            json.dumps(dict(definition.labels)),
            schedule.next_run_at,
            definition.output and definition.output.file,
        )

    def _schedule(self, row: Any) -> Schedule:
        sealed = Sealed(row["key_id"], row["wrapped_key"], row["sealed"])
        opened = self._vault.open(sealed, binding(row["organization_id"], row["id"]))
        selection = json.loads(row["selection"])
        definition = ScheduleDefinition(
            name=row["name"],
            connector_id=row["connector_id"],
            entity=row["entity"],
            action=row["action"],
            cron=row["cron"],
            params=json.loads(opened["params"]),
            select_fields=selection.get("select_fields"),
            exclude_fields=selection.get("exclude_fields"),
            output=None if row["file"] is None else OutputView(FileFormat(row["file"])),
            timezone=row["timezone"],
            enabled=row["is_enabled"],
            overlap=Overlap(row["overlap"]),
            catch_up=CatchUp(row["catch_up"]),
            labels=json.loads(row["labels"]),
        )
        return Schedule(
            id=row["id"],
            organization_id=row["organization_id"],
            client_id=row["client_id"],
            workspace_name=row["workspace_name"],
            kind=row["kind"],
            definition=definition,
            next_run_at=row["next_run_at"],
            last_run_at=row["last_run_at"],
            job_ids=row["job_ids"],
            missed_at=row["missed_at"],
            missed_reason=row["missed_reason"],
            paused_reason=paused_reason(
                row["connector_status"], row["status_reason"], is_deleted=bool(row["is_deleted"])
            ),
            created_at=row["created_at"],
            updated_at=row["updated_at"],
        )

    def due_of(self, row: Any) -> DueSlot:
        """The due slot in a row that `lock_due_within` returned."""
        schedule = self._schedule(row)
        return DueSlot(
            schedule=schedule,
            slot=row["next_run_at"],
            is_running=row["is_running"],
            is_organization_disabled=row["is_disabled"],
            last_finished_at=row["last_finished_at"],
        )


def _moved(outcome: SlotOutcome) -> tuple[Any, ...]:
    schedule, slot = outcome.due.schedule, outcome.due.slot
    return schedule.id, slot, outcome.next_run_at, schedule.job_id_of(slot), outcome.reason


def _seen_by(caller: Caller) -> tuple[UUID, Collection[str] | None, UUID | None]:
    """The caller's organization, the names of the workspaces to which it is limited, None for all, and its person."""
    return caller.organization_id, caller.client.workspaces, caller.person_id


def _no_schedule() -> NotFound:
    return NotFound("there is no such schedule")
