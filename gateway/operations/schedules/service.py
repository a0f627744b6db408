"""The use cases of schedules: create, read, change, delete and run now."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID, uuid4

from msgspec.structs import replace

from gateway.access.audit.log import Audit
from gateway.access.identity.model import Caller, Scope
from gateway.connectors.access import ConnectorAccess
from gateway.connectors.model import ConnectorRecord
from gateway.contract.cursors import cursor_after, read_time_cursor
from gateway.contract.kinds import Effect
from gateway.contract.schedules import ScheduleDefinition, SchedulePage, ScheduleView
from gateway.errors import ConnectorNotReady, FieldError, IdempotencyMismatch, InvalidParams
from gateway.foundation.aio.clock import CLOCK
from gateway.foundation.aio.turns import mapped
from gateway.jobs.acceptance import JobAcceptance
from gateway.jobs.model import StoredJob
from gateway.jobs.store import JobStore
from gateway.jobs.wakeup import Wakeup
from gateway.kinds.catalog import Catalog
from gateway.operations.permission import Permission
from gateway.operations.schedules import runs
from gateway.operations.schedules.cron import Cron, parsed
from gateway.operations.schedules.model import SCHEDULE_LABEL, SLOT_LABEL, Schedule
from gateway.operations.schedules.store import ScheduleStore

#: members of a schedule that determine what it runs
_OPERATION = ("connector_id", "entity", "action", "params")
#: members of a schedule that determine when it runs
_TIMING = ("cron", "timezone", "enabled")


@dataclass(frozen=True, kw_only=True)
class ScheduleService:
    """Schedules of an organization, for its callers; `DueRuns` starts their runs."""

    audit: Audit
    catalog: Catalog
    connectors: ConnectorAccess
    permission: Permission
    store: ScheduleStore
    jobs: JobStore
    acceptance: JobAcceptance
    wakeup: Wakeup

    async def create(
        self, caller: Caller, definition: ScheduleDefinition, *, idempotency_key: UUID | None = None
    ) -> ScheduleView:
        """Create a schedule; with a key that the client has used, the schedule that it created.

        Raises InvalidParams with all faults, IdempotencyMismatch if that schedule has another definition, and NotFound
        for the connector.
        """
        schedule_id = caller.new_id(idempotency_key)
        with self.audit.record(
            "schedule.create", caller, connector_id=definition.connector_id, target=str(schedule_id)
        ):
            record = await self.connectors.get(caller, definition.connector_id)
            schedule = Schedule(
                id=schedule_id,
                organization_id=record.organization_id,
                client_id=caller.client_id,
                workspace_name=record.workspace_name,
                kind=record.kind,
                definition=definition,
                next_run_at=None,
            )
            checked = self._checked(caller, schedule, definition)
            await self._permit(caller, record, checked)
            is_new = await self.store.insert(checked)
            stored = await self.store.get(caller, schedule_id)
            if not is_new and stored.definition != checked.definition:
                raise IdempotencyMismatch("the idempotency key was used for another schedule; use a new one")
            return stored.view

    async def get(self, caller: Caller, schedule_id: UUID) -> ScheduleView:
        """The schedule; raises NotFound."""
        return (await self.store.get(caller, schedule_id)).view

    async def find(
        self,
        caller: Caller,
        cursor: str | None,
        limit: int,
        connector_id: UUID | None = None,
        client_id: UUID | None = None,
    ) -> SchedulePage:
        """Schedules, oldest first, of a connector or of those that run for a client; raises InvalidParams for a cursor
        that the gateway did not issue.
        """
        after = read_time_cursor(cursor)
        page, has_more = await self.store.page(caller, after, limit, connector_id, client_id)
        views = await mapped(lambda schedule: schedule.view, page)
        return SchedulePage(views, cursor_after(page) if has_more else None)

    async def change(self, caller: Caller, schedule_id: UUID, change: Mapping[str, Any]) -> ScheduleView:
        """Change members of the definition; from now on the schedule runs for the caller's client.

        A due slot stays unless the change affects when the schedule runs. Raises the errors of `create`.
        """
        with self.audit.record("schedule.update", caller, target=str(schedule_id)) as entry:
            record = await self.connectors.get(caller, change["connector_id"]) if "connector_id" in change else None
            async with self.store.locked(caller, schedule_id) as (connection, before):
                entry.connector_id = before.definition.connector_id
                bound = before
                if record is not None:
                    bound = replace(before, workspace_name=record.workspace_name, kind=record.kind)
                after = self._checked(caller, bound, replace(before.definition, **change))
                if any(member in change for member in _OPERATION):
                    connector_id = after.definition.connector_id
                    await self._permit(caller, record or await self.connectors.get(caller, connector_id), after)
                if not any(member in change for member in _TIMING):
                    after = replace(after, next_run_at=before.next_run_at)
                await self.store.update_within(connection, after)
            return (await self.store.get(caller, schedule_id)).view

    @staticmethod
    def next_times(expression: str, timezone: str, count: int) -> Sequence[datetime]:
        """The next times of a cron expression, in UTC; raises InvalidParams with all faults."""
        return parsed(expression, timezone).next_times(CLOCK.now(), count)

    async def delete(self, caller: Caller, schedule_id: UUID) -> None:
        """Remove the schedule; a run that has begun continues. Raises NotFound."""
        with self.audit.record("schedule.delete", caller, target=str(schedule_id)):
            caller.require(Scope.WRITE)
            await self.store.delete(caller, schedule_id)

    async def run(self, caller: Caller, schedule_id: UUID, request_id: str) -> StoredJob:
        """Run the schedule now, even if another run has not ended; raises NotFound and ConnectorNotReady."""
        with self.audit.record("schedule.run", caller, target=str(schedule_id)) as entry:
            caller.require(Scope.WRITE)
            await self.acceptance.require_room(caller.organization_id)
            async with self.store.locked(caller, schedule_id) as (connection, schedule):
                entry.connector_id = schedule.definition.connector_id
                if schedule.paused_reason is not None:
                    raise ConnectorNotReady(f"the schedule is paused: {schedule.paused_reason}")
                new = runs.job_of(
                    schedule,
                    self.catalog.served(schedule.kind),
                    uuid4(),
                    client_id=caller.client_id,
                    request_id=request_id,
                )
                job = await self.jobs.accept_within(connection, new)
                await self.store.add_run_within(connection, schedule, job.id)
            entry.outcome = "accepted"
        await self.wakeup.notify(job.id, job.attempt)
        return job

    async def _permit(self, caller: Caller, record: ConnectorRecord, schedule: Schedule) -> None:
        """Raise DeniedByPolicy unless the caller may run the operation on a schedule; each run is decided again."""
        kind = self.catalog.served(record.kind)
        new = runs.new_job(schedule, kind)
        await self.permission.require(
            caller,
            record,
            kind=kind,
            entity=new.entity or "",
            action=new.action or "",
            params=new.params if schedule.definition.output is None else new.params["params"],
            surface=new.surface,
            may_wait=True,
        )

    def _checked(self, caller: Caller, schedule: Schedule, definition: ScheduleDefinition) -> Schedule:
        """The schedule with a checked definition; raises InvalidParams, UnknownEntity and UnknownAction."""
        caller.require(Scope.WRITE)
        cron = checked_timing(definition)
        new = runs.new_job(replace(schedule, definition=definition), self.catalog.served(schedule.kind))
        if new.effect is Effect.READ:
            caller.require(Scope.READ)
        definition = replace(definition, entity=new.entity, action=new.action, cron=cron.expression)
        next_run_at = cron.next_after(CLOCK.now()) if definition.enabled else None
        return replace(schedule, client_id=caller.client_id, definition=definition, next_run_at=next_run_at)


def checked_timing(definition: ScheduleDefinition) -> Cron:
    """The cron expression of the schedule; raises InvalidParams with all faults of its time and its labels."""
    reserved = [
        FieldError(
            f"/labels/{name}", f"labels.{name}", "reserved", f"labels.{name} is set by the gateway; leave it out"
        )
        for name in (SCHEDULE_LABEL, SLOT_LABEL)
        if name in definition.labels
    ]
    try:
        cron = parsed(definition.cron, definition.timezone)
    except InvalidParams as error:
        raise InvalidParams(faults=[*error.faults, *reserved]) from error
    if reserved:
        raise InvalidParams(faults=reserved)
    return cron
