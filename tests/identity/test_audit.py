"""The audit log on a real PostgreSQL: every entry arrives as it was noted, whatever callers wrote."""

from uuid import uuid4

import pytest

from gateway.db.pool import Database
from gateway.identity.audit import Audit, Entry


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
    noted = Entry(uuid4(), uuid4(), "tickets.list", "succeeded", uuid4(), intent, "request-1")
    audit = Audit(database)

    async with audit.writing():
        audit.note(noted)

    (found,) = await audit.find(noted.organization_id)
    assert (found.actor, found.connector_id, found.at) == (noted.actor, noted.connector_id, noted.at)
    assert (found.what, found.outcome, found.request_id) == ("tickets.list", "succeeded", "request-1")
    assert found.intent == kept


async def test_an_odd_entry_takes_none_of_its_batch_along(database: Database):
    organization_id, audit = uuid4(), Audit(database)

    async with audit.writing():
        for intent in ("first", "\x00", "last"):
            audit.note(Entry(organization_id, None, "tickets.get", "not_found", intent=intent))

    found = await audit.find(organization_id)
    assert [entry.intent for entry in found] == ["last", "\N{REPLACEMENT CHARACTER}", "first"]
