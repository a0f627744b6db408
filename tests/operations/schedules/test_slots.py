"""What becomes of a slot: a table of what is known when it is looked at."""

from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from gateway.contract.schedules import CatchUp, Overlap, ScheduleDefinition
from gateway.operations.schedules.model import Schedule
from gateway.operations.schedules.slots import NO_WORKER, NOT_ENDED, DueSlot, paused_reason, reason_to_miss

SLOT = datetime(2026, 3, 1, 9, tzinfo=UTC)
ONE_ID = UUID(int=1)


def due(*, overlap=Overlap.SKIP, catch_up=CatchUp.ONE, paused=None, **known):
    definition = ScheduleDefinition(
        name="n",
        connector_id=ONE_ID,
        entity="tickets",
        action="list",
        cron="0 9 * * *",
        overlap=overlap,
        catch_up=catch_up,
    )
    schedule = Schedule(
        id=ONE_ID,
        organization_id=ONE_ID,
        client_id=ONE_ID,
        workspace_name="acme",
        kind="support-desk",
        definition=definition,
        next_run_at=SLOT,
        paused_reason=paused,
    )
    return DueSlot(schedule=schedule, slot=SLOT, **{"is_running": False, **known})


@pytest.mark.parametrize(
    ("slot", "seconds_late", "reason"),
    [
        (due(), 0, None),
        (due(), 86_400, None),
        (due(catch_up=CatchUp.NONE), 59, None),
        (due(catch_up=CatchUp.NONE), 61, NO_WORKER),
        (due(is_running=True), 0, NOT_ENDED),
        # a queued slot is late because the previous run took so long, which is no reason to drop it
        (
            due(overlap=Overlap.QUEUE, catch_up=CatchUp.NONE, last_finished_at=SLOT + timedelta(seconds=600)),
            610,
            None,
        ),
        (
            due(overlap=Overlap.QUEUE, catch_up=CatchUp.NONE, last_finished_at=SLOT + timedelta(seconds=600)),
            700,
            NO_WORKER,
        ),
        (due(paused="its connector was deleted"), 0, "its connector was deleted"),
        (due(is_organization_disabled=True), 0, "the organization is disabled"),
    ],
)
def test_a_slot_is_run_or_missed(slot, seconds_late, reason):
    assert reason_to_miss(slot, SLOT + timedelta(seconds=seconds_late)) == reason


@pytest.mark.parametrize(
    ("status", "status_reason", "is_deleted", "reason"),
    [
        ("active", None, False, None),
        ("disabled", None, False, "its connector is disabled"),
        (
            "needs_reauth",
            "the application refused it",
            False,
            "its connector is needs_reauth: the application refused it",
        ),
        ("active", None, True, "its connector was deleted"),
        (None, None, False, "its connector was deleted"),
    ],
)
def test_a_connector_that_cannot_be_called_pauses_its_schedules(status, status_reason, is_deleted, reason):
    assert paused_reason(status, status_reason, is_deleted=is_deleted) == reason
