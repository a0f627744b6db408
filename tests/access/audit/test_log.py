"""The audit log on a real PostgreSQL: every entry arrives as it was noted, whatever callers wrote."""

import stat
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import UUID, uuid4

import asyncpg
import pytest

from gateway.access.audit.entry import INSERT_ENTRIES, Entry
from gateway.access.audit.log import Audit, EntryFilter, prune_audit
from gateway.foundation.aio.clock import CLOCK
from gateway.foundation.aio.turns import compute_for
from gateway.foundation.db.batch_writer import BatchWriter, Spool, rows_of
from gateway.foundation.db.pool import Database
from gateway.foundation.db.row_journal import RowJournal
from gateway.foundation.telemetry.metrics import BACKGROUND_FAILURES
from tests.harness.databases import refusing
from tests.harness.waiting import eventually


def ended(what: str, organization_id: UUID, intent: str | None = None) -> Entry:
    entry = Entry(what=what, organization_id=organization_id, intent=intent)
    assert entry.end("succeeded", "request-1", 3)
    return entry


def rows(organization_id: UUID, *names: str) -> bytes:
    """A batch as it is saved in a file."""
    entries = [ended(name, organization_id) for name in names]
    for entry in entries:
        entry.at = CLOCK.unix_time()
    return rows_of(entries).encode()


@pytest.mark.parametrize("entry", [Entry(what=None, organization_id=uuid4()), Entry(what="tickets.list")])
def test_what_is_no_deed_and_what_no_organization_could_look_up_is_not_noted(entry):
    assert not entry.end("succeeded", "request-1", 3)


@pytest.mark.parametrize(
    ("intent", "kept"),
    [
        (None, None),
        ("to tidy up", "to tidy up"),
        ('a "quoted" line\nand a \\ backslash', 'a "quoted" line\nand a \\ backslash'),
        ("NUL\x00inside", "NUL\N{REPLACEMENT CHARACTER}inside"),
        (r"the text \u0000 and NUL" + "\x00", r"the text \u0000 and NUL" + "\N{REPLACEMENT CHARACTER}"),
        ("\N{SNOWMAN} \U0001f600", "\N{SNOWMAN} \U0001f600"),
    ],
)
async def test_an_entry_is_kept_as_it_was_noted(database: Database, intent: str | None, kept: str | None):
    noted = Entry(what="tickets.list", organization_id=uuid4(), actor=uuid4(), connector_id=uuid4(), intent=intent)
    noted.end("succeeded", "request-1", 3)
    audit = Audit(database)

    async with audit.writing():
        audit.note(noted)

    (found,) = await audit.find(noted.organization_id)
    assert (found.actor, found.connector_id) == (noted.actor, noted.connector_id)
    assert found.at.timestamp() == pytest.approx(noted.at, abs=1e-5)
    assert (found.what, found.outcome, found.request_id) == ("tickets.list", "succeeded", "request-1")
    assert found.intent == kept


async def test_an_odd_entry_takes_none_of_its_batch_along(database: Database):
    organization_id, audit = uuid4(), Audit(database)

    async with audit.writing():
        for intent in ("first", "\x00", "last"):
            audit.note(ended("tickets.get", organization_id, intent=intent))

    found = await audit.find(organization_id)
    assert [entry.intent for entry in found] == ["last", "\N{REPLACEMENT CHARACTER}", "first"]


@pytest.mark.parametrize("sqlstate", ["53100", "25006", "40P01"], ids=["disk full", "read only", "deadlock"])
async def test_entries_wait_for_a_postgresql_that_refuses_them(database: Database, database_url: str, sqlstate: str):
    organization_id, audit = uuid4(), Audit(database)
    failed = BACKGROUND_FAILURES.value("audit writer")

    async with audit.writing():
        async with refusing(database_url, "INSERT ON audit", sqlstate):
            audit.note(ended("tickets.get", organization_id))
            await eventually(lambda: BACKGROUND_FAILURES.value("audit writer") > failed)
        await eventually(lambda: audit.find(organization_id))

    assert len(await audit.find(organization_id)) == 1


async def test_an_entry_that_postgresql_never_takes_keeps_no_other_out(database: Database, database_url: str):
    organization_id, audit = uuid4(), Audit(database)

    async with refusing(database_url, "INSERT ON audit", "23514", when="NEW.what = 'refused'"), audit.writing():
        for what in ("first", "refused", "last"):
            audit.note(ended(what, organization_id))

        async def both() -> list[str]:
            found = [entry.what for entry in await audit.find(organization_id)]
            return found if len(found) > 1 else []

        stored = await eventually(both)

    assert stored == ["last", "first"]


async def test_entries_are_deleted_after_their_retention_and_nothing_else_can_delete_them(database: Database):
    organization_id, audit = uuid4(), Audit(database)
    async with audit.writing():
        for days in (0, 2, 40):
            noted = ended(f"{days} days ago", organization_id)
            noted.at = CLOCK.unix_time() - days * 86400
            audit.note(noted)

    await prune_audit(database, 30 * 86400)
    after_a_month = [entry.what for entry in await audit.find(organization_id)]
    await prune_audit(database, 0)

    assert sorted(after_a_month) == ["0 days ago", "2 days ago"]
    assert [entry.what for entry in await audit.find(organization_id)] == ["0 days ago"]
    with pytest.raises(asyncpg.InsufficientPrivilegeError):
        async with database.system() as connection:
            await connection.execute("DELETE FROM audit")


async def test_an_intent_is_shown_as_unknown_until_its_settlement_is_stored(database: Database):
    organization_id, audit = uuid4(), Audit(database)
    settlement = Entry(
        what="tickets.create",
        organization_id=organization_id,
        actor=uuid4(),
        connector_id=uuid4(),
        changed=["ticket.subject"],
    )
    async with audit.writing():
        audit.note(settlement.intent_of(uuid4()))
    under_way = await audit.find(organization_id)
    found = await audit.find(organization_id, EntryFilter(outcome="unknown"))

    settlement.settle("succeeded")
    async with audit.writing():
        audit.note(settlement)
        audit.note(settlement)

    assert [entry.outcome for entry in under_way] == [entry.outcome for entry in found] == ["unknown"]
    assert [entry.outcome for entry in await audit.find(organization_id)] == ["succeeded"]
    assert await audit.find(organization_id, EntryFilter(outcome="unknown")) == []


async def test_entries_left_in_a_file_are_stored_once_even_if_it_is_read_twice(database: Database, tmp_path: Path):
    organization_id = uuid4()
    identify = {"call_id": str(uuid4())}
    Spool(tmp_path, lambda row: {**identify, **row}).save(rows(organization_id, "tickets.get"))
    [left] = tmp_path.glob("*.json")
    again = left.read_bytes()

    async with Audit(database, tmp_path).writing():
        pass
    left.write_bytes(again)
    async with Audit(database, tmp_path).writing():
        pass

    assert [entry.what for entry in await Audit(database).find(organization_id)] == ["tickets.get"]
    usage = await Audit(database).usage(organization_id, datetime.now(UTC) - timedelta(hours=1), 60)
    assert sum(point.calls for point in usage) == 1
    assert list(tmp_path.iterdir()) == []


async def test_entries_of_one_organization_leave_room_for_those_of_others_while_postgresql_is_away(database: Database):
    hostile, polite = uuid4(), uuid4()
    writer = BatchWriter(database, INSERT_ENTRIES, "audit", max_buffered=10)

    for organization_id, count in ((hostile, 100), (polite, 2)):
        compute_for(organization_id)
        for _ in range(count):
            entry = Entry(what="tickets.get", organization_id=organization_id, actor=uuid4(), outcome="succeeded")
            entry.at = time.time()
            writer.add(entry)
    async with writer.writing():
        pass

    audit = Audit(database)
    assert [len(await audit.find(organization_id)) for organization_id in (hostile, polite)] == [6, 2]


async def test_a_file_that_has_no_entries_is_set_aside_and_holds_up_no_other(database: Database, tmp_path: Path):
    organization_id = uuid4()
    (tmp_path / "0.json").write_text("half a fi")
    Spool(tmp_path, dict).save(rows(organization_id, "tickets.get"))

    async with Audit(database, tmp_path).writing() as audit:
        audit.note(ended("tickets.list", organization_id))

    assert len(await Audit(database).find(organization_id)) == 2
    assert [path.name for path in tmp_path.iterdir()] == ["0.unreadable"]


async def test_a_file_that_cannot_be_read_holds_up_no_other(database: Database, tmp_path: Path):
    organization_id = uuid4()
    (tmp_path / "0.json").mkdir()
    (tmp_path / "1.json").write_bytes(b'["\xff"]')
    Spool(tmp_path, dict).save(rows(organization_id, "tickets.get"))

    async with Audit(database, tmp_path).writing() as audit:
        audit.note(ended("tickets.list", organization_id))

    assert len(await Audit(database).find(organization_id)) == 2
    assert sorted(path.name for path in tmp_path.iterdir()) == ["0.json", "1.unreadable"]


async def test_a_killed_process_leaves_entries_of_which_a_damaged_one_costs_no_other(
    database: Database, tmp_path: Path
):
    organization_id, killed = uuid4(), RowJournal(tmp_path)
    for row in (b'{"organ', rows(organization_id, "tickets.get")[1:-1], rows(organization_id, "a\x00b")[1:-1]):
        killed.end(uuid4(), row)
    killed.close()

    async with Audit(database, tmp_path).writing():
        await eventually(lambda: [path.name for path in tmp_path.iterdir()] == ["lock"])

    found = await Audit(database).find(organization_id)
    assert {entry.what for entry in found} == {"tickets.get", "a\N{REPLACEMENT CHARACTER}b"}


async def test_what_postgresql_does_not_take_at_the_end_is_saved_for_its_owner_only_and_said(
    database: Database, database_url: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    organization_id, spool = uuid4(), tmp_path / "audit"
    async with refusing(database_url, "INSERT ON audit", "53100"):
        async with Audit(database, spool).writing() as audit:
            audit.note(ended("tickets.get", organization_id))
        [saved] = spool.iterdir()
        modes = [stat.S_IMODE(path.stat().st_mode) for path in (spool, saved)]
    async with Audit(database, spool).writing():
        pass

    assert modes == [0o700, 0o600]
    assert any("1 rows are saved in" in record.message for record in caplog.records)
    assert len(await Audit(database).find(organization_id)) == 1
