"""Slots that are due: each is run once, even if several workers query or one of them dies."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any

from gateway.access.audit.log import Audit
from gateway.contract.events import EventType
from gateway.contract.kinds import Effect
from gateway.contract.members import moment
from gateway.errors import GatewayError, InternalError
from gateway.events.recording import add_event
from gateway.foundation.db.pool import Connection, Database
from gateway.foundation.db.rows import decoded, readable
from gateway.foundation.telemetry.metrics import SCHEDULE_LATENESS, SCHEDULE_SLOTS
from gateway.jobs.model import NewJob
from gateway.jobs.settlements import call_id_of
from gateway.jobs.store import JobStore
from gateway.jobs.wakeup import Wakeup
from gateway.kinds.catalog import Catalog
from gateway.operations.accounting import changed_members, target_of
from gateway.operations.schedules import runs
from gateway.operations.schedules.cron import Cron
from gateway.operations.schedules.model import Schedule
from gateway.operations.schedules.slots import reason_to_miss
from gateway.operations.schedules.store import ScheduleStore, SlotOutcome

log = logging.getLogger(__name__)

#: slots in one transaction
_BATCH = 200


@dataclass(frozen=True, kw_only=True)
class DueRuns:
    """Starts the runs of all organizations; every worker has one."""

    audit: Audit
    catalog: Catalog
    database: Database
    store: ScheduleStore
    jobs: JobStore
    wakeup: Wakeup

    async def start(self) -> int:
        """Accept the jobs of the slots that are due; returns how many. Without any it is one statement."""
        if not await self.store.is_any_due():
            return 0
        done = 0
        while (slots := await self._start_some()) > 0:
            done += slots
        return done

    async def _start_some(self) -> int:
        """One transaction: the slots move on, and their jobs are accepted."""
        async with self.database.system() as connection, connection.transaction():
            rows, now = await self.store.lock_due_within(connection, _BATCH)
            if now is None:
                return 0
            decided, unreadable = await decoded(rows, partial(self._decided, now), "a schedule")
            for row, error in unreadable:
                await self._pass(connection, row, now, error.detail)
            moved = await self.store.move_on_within(connection, [outcome for outcome, _ in decided])
            outcomes = [(outcome, new) for outcome, new in decided if outcome.due.schedule.id in moved]
            accepted = await self.jobs.accept_all_within(connection, [new for _, new in outcomes if new is not None])
            by_id = {row["id"]: row for row in rows}
            for outcome, _ in outcomes:
                if outcome.reason is not None:
                    row = by_id[outcome.due.schedule.id]
                    await _add_missed(connection, row, outcome.due.slot, outcome.reason, outcome.next_run_at)
        self._report(outcomes, now)
        for job in accepted:
            if not isinstance(job, InternalError):
                await self.wakeup.notify(job.id, job.attempt)
        return len(rows)

    async def _pass(self, connection: Connection, row: Any, now: datetime, reason: str) -> None:
        """Let the slot of a schedule that cannot be read pass, and disable it if its next slot is not known."""

        def following(row: Any) -> datetime:
            return Cron(row["cron"], row["timezone"]).next_after(max(now, row["next_run_at"]))

        found = readable(row, following, "the time of a schedule")
        next_run_at = None if isinstance(found, InternalError) else found
        await self.store.miss_within(connection, row["id"], next_run_at, reason)
        await _add_missed(connection, row, row["next_run_at"], reason, next_run_at)
        SCHEDULE_SLOTS.add("missed")

    def _decided(self, now: datetime, row: Any) -> tuple[SlotOutcome, NewJob | None]:
        """The outcome of the slot in the row, and its job if it is run."""
        due = self.store.due_of(row)
        schedule = due.schedule
        next_run_at = schedule.cron.next_after(max(now, due.slot))
        reason = reason_to_miss(due, now)
        if reason is not None:
            return SlotOutcome(due, next_run_at, reason), None
        try:
            new = runs.job_of(schedule, self.catalog.served(schedule.kind), schedule.job_id_of(due.slot), due.slot)
        except GatewayError as error:  # a later version of the kind may refuse params that an earlier one accepted
            return SlotOutcome(due, next_run_at, error.detail), None
        return SlotOutcome(due, next_run_at, None), new

    def _report(self, outcomes: Sequence[tuple[SlotOutcome, NewJob | None]], now: datetime) -> None:
        for outcome, new in outcomes:
            schedule = outcome.due.schedule
            SCHEDULE_SLOTS.add("run" if new is not None else "missed")
            SCHEDULE_LATENESS.observe((now - outcome.due.slot).total_seconds())
            extra = {"schedule_id": str(schedule.id), "slot": moment(outcome.due.slot)}
            if new is None:
                log.warning("a slot is not run: %s", outcome.reason, extra=extra)
            else:
                self._audit_run(schedule, new)

    def _audit_run(self, schedule: Schedule, new: NewJob) -> None:
        what, intent = f"{new.entity}.{new.action}", f"schedule {schedule.definition.name}"
        with self.audit.record(what, schedule, connector_id=new.connector_id, intent=intent) as entry:
            entry.kind = new.kind
            entry.accept(call_id_of(new))
            if new.effect is not Effect.READ:
                operation = self.catalog.served(schedule.kind).operation(
                    schedule.definition.entity, schedule.definition.action
                )
                entry.target = target_of(operation, new.params)
                entry.changed = changed_members(operation, new.params) or None


async def _add_missed(
    connection: Connection, row: Any, slot: datetime, reason: str, next_run_at: datetime | None
) -> None:
    """Add the event of a slot that is not run; `row` has `id`, `organization_id`, `connector_id` and `name`."""
    data = {
        "schedule_id": str(row["id"]),
        "name": row["name"],
        "slot": moment(slot),
        "reason": reason,
        "next_run_at": moment(next_run_at),
    }
    await add_event(connection, row["organization_id"], EventType.SCHEDULE_MISSED, data, row["connector_id"])
