"""Metered calls: each end of a call is counted once, and events never change."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest

from gateway.access.audit.chain import AuditChain
from gateway.access.audit.entry import INSERT_ENTRIES, Entry
from gateway.access.audit.metering import HourUsed, Metering
from gateway.contract.kinds import Effect
from gateway.foundation.db.batch_writer import rows_of
from gateway.foundation.db.pool import Database
from gateway.foundation.proof import Signer

HOUR = datetime(2026, 3, 1, 9, tzinfo=UTC)
#: when the hour is over, and when writes of it without settlement count as unknown
AFTER, MUCH_LATER = HOUR + timedelta(hours=1, minutes=3), HOUR + timedelta(days=2)
CLIENT = UUID(int=7)


@dataclass(frozen=True)
class Meter:
    """An organization whose entries are metered."""

    database: Database
    metering: Metering
    organization_id: UUID

    def entry(self, outcome: str | None, kind: str = "event", **members: Any) -> Entry:
        defaults: dict[str, Any] = {"effect": Effect.WRITE, "actor": CLIENT, "at": HOUR.timestamp() + 60}
        entry = Entry(what="tickets.update", organization_id=self.organization_id, **(defaults | members))
        entry.outcome, entry.entry_kind = outcome, kind
        return entry

    async def store(self, *entries: Entry) -> None:
        """Commit entries, and put them into the chain."""
        async with self.database.system() as connection:
            await connection.execute(INSERT_ENTRIES, rows_of(entries))
        await AuditChain(self.database, [Signer(bytes(32))], str).seal()

    async def events(self, now: datetime = AFTER, after: int = 0, limit: int = 100) -> Sequence[HourUsed]:
        await self.metering.publish(now)
        return await self.metering.find(self.organization_id, after=after, limit=limit)


@pytest.fixture
async def meter(database: Database) -> Meter:
    return Meter(database, Metering(database), uuid4())


def counts(events: Sequence[HourUsed]) -> list[tuple[int, int, int, int]]:
    return [(each.succeeded, each.failed, each.unknown, each.writes) for each in events]


@pytest.mark.parametrize(
    ("outcome", "members", "expected"),
    [
        ("succeeded", {}, [(1, 0, 0, 1)]),
        ("succeeded", {"effect": Effect.READ}, [(1, 0, 0, 0)]),
        ("succeeded", {"kind": "settlement", "call_id": uuid4()}, [(1, 0, 0, 1)]),
        ("upstream_rejected", {}, [(0, 1, 0, 1)]),
        ("canceled", {"kind": "settlement", "call_id": uuid4()}, [(0, 1, 0, 1)]),
        ("unknown", {}, [(0, 0, 1, 1)]),
        ("interrupted", {}, [(0, 0, 1, 1)]),
        ("interrupted", {"effect": Effect.READ}, [(0, 1, 0, 0)]),
        ("accepted", {}, []),
        ("accepted", {"kind": "intent", "call_id": uuid4()}, []),
        (None, {"kind": "intent", "call_id": uuid4()}, []),
        ("succeeded", {"effect": None}, []),
    ],
)
async def test_the_end_of_a_call_is_counted_by_its_outcome(meter: Meter, outcome, members, expected):
    await meter.store(meter.entry(outcome, **members))

    assert counts(await meter.events()) == expected


async def test_an_hour_becomes_events_once_it_is_over_and_they_never_change(meter: Meter):
    await meter.store(meter.entry("succeeded"), meter.entry("succeeded", actor=UUID(int=8)))

    during, first = await meter.events(HOUR + timedelta(minutes=50)), await meter.events()
    await meter.store(meter.entry("unknown"), meter.entry("succeeded", at=HOUR.timestamp() + 3600))
    again = await meter.events()

    assert during == []
    assert [(each.hour, each.client_id) for each in first] == [(HOUR, CLIENT), (HOUR, UUID(int=8))]
    assert again[:2] == first
    assert counts(again[2:]) == [(0, 0, 1, 1)]
    assert len({each.id for each in again}) == 3


async def test_the_same_hour_has_the_same_ids_when_it_is_published_again(meter: Meter):
    await meter.store(meter.entry("succeeded"))
    [first] = await meter.events()
    async with meter.database.system() as connection:  # as after the restoration of a backup
        await connection.execute("DELETE FROM usage_events WHERE organization_id = $1", meter.organization_id)
    await meter.store(meter.entry("succeeded"))

    [again] = await meter.events()

    assert (again.id, again.succeeded) == (first.id, 1)
    assert again.number > first.number


async def test_an_event_that_has_the_id_of_another_holds_up_none(meter: Meter):
    """As an imported file may bring one."""
    await meter.store(meter.entry("succeeded"))
    [first] = await meter.events()
    async with meter.database.system() as connection:
        await connection.execute("DELETE FROM usage_events WHERE id = $1", first.id)
        number = await connection.fetchval(
            "INSERT INTO usage_events (id, organization_id, hour, writes, succeeded, failed, unknown) "
            "VALUES ($1, $2, $3, 0, 0, 0, 0) RETURNING number",
            first.id, meter.organization_id, HOUR - timedelta(hours=1),
        )  # fmt: skip
    await meter.store(meter.entry("succeeded"), meter.entry("unknown", actor=UUID(int=8)))

    again = await meter.events(after=number)

    assert sorted(counts(again)) == [(0, 0, 1, 1), (1, 0, 0, 1)]
    assert first.id not in [each.id for each in again]


async def test_a_write_without_settlement_is_unknown_after_a_day_and_never_counted_again(meter: Meter):
    call_id = uuid4()
    await meter.store(meter.entry(None, "intent", call_id=call_id))

    first, later = await meter.events(), await meter.events(MUCH_LATER)
    await meter.store(meter.entry("succeeded", "settlement", call_id=call_id))
    again = await meter.events(MUCH_LATER)

    assert (first, counts(later)) == ([], [(0, 0, 1, 1)])
    assert again == later


async def test_pages_follow_each_other(meter: Meter):
    await meter.store(*[meter.entry("succeeded", actor=UUID(int=number)) for number in range(1, 6)])

    first = await meter.events(limit=3)
    second = await meter.metering.find(meter.organization_id, after=first[-1].number, limit=3)

    assert [each.client_id for each in (*first, *second)] == [UUID(int=number) for number in range(1, 6)]


async def test_other_organizations_and_workspaces_have_other_events(meter: Meter):
    await meter.store(meter.entry("succeeded"))
    await meter.events()

    assert await meter.metering.find(uuid4(), after=0, limit=10) == []
    assert await meter.metering.find(meter.organization_id, after=0, workspaces=["acme"], limit=10) == []
    assert await meter.metering.find(meter.organization_id, after=0, since=AFTER, limit=10) == []
