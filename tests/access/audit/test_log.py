"""The audit log on a real PostgreSQL: every entry arrives as it was noted, whatever callers wrote."""

from uuid import UUID, uuid4

import asyncpg
import pytest

from gateway.access.audit.log import Audit, Entry, prune_audit
from gateway.foundation.aio.clock import CLOCK
from gateway.foundation.db.pool import Database
from gateway.foundation.telemetry.metrics import BACKGROUND_FAILURES
from tests.harness.databases import refusing
from tests.harness.waiting import eventually


def ended(what: str, organization_id: UUID, intent: str | None = None) -> Entry:
    entry = Entry(what=what, organization_id=organization_id, intent=intent)
    assert entry.end("succeeded", "request-1", 3)
    return entry


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
