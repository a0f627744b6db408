"""Reads by a hot standby: nothing that was written before a read is missing, and a late standby is not read."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from uuid import UUID, uuid4

import asyncpg
import pytest

from gateway.foundation.aio.clock import CLOCK
from gateway.foundation.db.migrate import migrate
from gateway.foundation.db.pool import Connection, Database
from gateway.foundation.db.replica import Replica
from gateway.foundation.telemetry.metrics import REPLICA_READS
from tests.harness.replication import replicated
from tests.harness.waiting import eventually

pytestmark = pytest.mark.processes

_NAMES = "SELECT name FROM workspaces ORDER BY name"
_IS_STANDBY = "SELECT pg_is_in_recovery()"
_COPIES = "SELECT count(*) FROM context_entities"
# A connector of the person $2, with a copy.
_PERSONAL_COPY = """
    WITH workspace AS (
        INSERT INTO workspaces (id, organization_id, name) VALUES (gen_random_uuid(), $1, 'own') RETURNING id
    )
    INSERT INTO connectors (id, organization_id, workspace_id, kind, name, status, owner_id)
    SELECT $3, $1, id, 'support-desk', 'Mail', 'active', $2 FROM workspace
"""
_COPY = "INSERT INTO context_entities (connector_id, organization_id, entity, layout) VALUES ($2, $1, 'tickets', '{}')"


@dataclass(frozen=True)
class Pair:
    """A primary with its standby."""

    primary_url: str
    standby_url: str
    database: Database
    organization_id: UUID

    async def write(self, name: str) -> None:
        async with self.database.tenant(self.organization_id) as connection:
            await connection.execute(
                "INSERT INTO workspaces (id, organization_id, name) VALUES ($1, $2, $3)",
                uuid4(),
                self.organization_id,
                name,
            )

    async def on_standby(self, statement: str) -> None:
        connection = await asyncpg.connect(self.standby_url)
        try:
            await connection.execute(statement)
        finally:
            await connection.close()


@pytest.fixture(scope="module")
async def servers(short_directory: Path) -> AsyncIterator[tuple[str, str]]:
    with replicated(short_directory / "replicated") as urls:
        await migrate(urls[0])
        yield urls


@pytest.fixture
async def pair(servers: tuple[str, str]) -> AsyncIterator[Pair]:
    """An organization on both; the standby replays at the end of the test."""
    async with Database.open(servers[0], size=4) as database:
        organization_id = uuid4()
        async with database.system() as connection:
            await connection.execute(
                "INSERT INTO organizations (id, name) VALUES ($1, $2)", organization_id, str(organization_id)
            )
        pair = Pair(*servers, database, organization_id)
        yield pair
        await pair.on_standby("SELECT pg_wal_replay_resume()")


@pytest.fixture
async def replica(pair: Pair) -> AsyncIterator[Replica]:
    """The replica, once it is read."""
    async with Replica.open(pair.database, pair.standby_url, size=2, max_lag=30) as replica:
        pair.database.replica = replica
        await eventually(lambda: replica.trouble is None)
        yield replica
        pair.database.replica = None


async def names(connection: Connection) -> list[str]:
    return [row["name"] for row in await connection.fetch(_NAMES)]


def reading(statement: str) -> Callable[[Connection], Awaitable[object]]:
    return lambda connection: connection.fetchval(statement)


async def test_a_current_read_has_what_was_written_before_it(pair: Pair, replica: Replica):
    for number in range(20):
        await pair.write(f"w{number:02}")
        found, _ = await pair.database.read(pair.organization_id, names)
        assert len(found) == number + 1


async def test_the_standby_answers_and_says_of_when(pair: Pair, replica: Replica):
    before, counted = CLOCK.now(), REPLICA_READS.value("replica")

    async def by_standby() -> datetime | None:
        is_standby, as_of = await pair.database.read(pair.organization_id, reading(_IS_STANDBY))
        return as_of if is_standby else None

    as_of = await eventually(by_standby)

    assert before <= as_of <= CLOCK.now()
    assert REPLICA_READS.value("replica") > counted


async def test_the_standby_shows_an_organization_only_its_own_rows(pair: Pair, replica: Replica):
    await pair.write("mine")

    found, as_of = await pair.database.read(uuid4(), names, is_current=False)

    assert as_of is not None
    assert found == []


async def test_the_standby_shows_the_copy_of_a_personal_connector_to_its_owner_only(pair: Pair, replica: Replica):
    person, connector_id = uuid4(), uuid4()
    async with pair.database.system() as connection:
        await connection.execute(_PERSONAL_COPY, pair.organization_id, person, connector_id)
        await connection.execute(_COPY, pair.organization_id, connector_id)

    async def by_standby(whose: UUID | None) -> int:
        async def seen() -> tuple[int] | None:
            found, as_of = await pair.database.read(pair.organization_id, reading(_COPIES), person=whose)
            return None if as_of is None else (found,)

        return (await eventually(seen))[0]

    assert [await by_standby(whose) for whose in (person, uuid4(), None)] == [1, 0, 0]


async def test_the_standby_is_read_only_as_the_primary_would_be(pair: Pair, servers: tuple[str, str]):
    """A primary that is given as the replica takes no writes either."""
    async with Replica.open(pair.database, servers[0], size=2, max_lag=30) as replica:
        await eventually(lambda: replica.trouble is None)
        setting = "SELECT current_setting('transaction_read_only')"
        read = await replica.read(pair.organization_id, reading(setting), is_current=True)

    assert read is not None
    assert read[0] == "on"


async def test_while_the_standby_is_behind_the_primary_answers_what_must_be_current(pair: Pair, replica: Replica):
    await pair.on_standby("SELECT pg_wal_replay_pause()")
    await pair.write("late")

    current, now = await pair.database.read(pair.organization_id, names)
    recent, as_of = await pair.database.read(pair.organization_id, names, is_current=False)

    assert (current, now) == (["late"], None)
    assert recent == []
    assert as_of is not None
    assert as_of < CLOCK.now()


async def test_a_standby_that_is_too_late_is_not_read_until_it_has_caught_up(
    pair: Pair, caplog: pytest.LogCaptureFixture
):
    caplog.set_level(logging.INFO)
    async with Replica.open(pair.database, pair.standby_url, size=2, max_lag=0.5) as replica:
        await eventually(lambda: replica.trouble is None)
        await pair.on_standby("SELECT pg_wal_replay_pause()")

        async def is_late() -> bool:
            await pair.write(uuid4().hex)
            return replica.trouble is not None and "behind" in replica.trouble

        await eventually(is_late)
        late = await replica.read(pair.organization_id, names, is_current=False)
        await pair.on_standby("SELECT pg_wal_replay_resume()")
        await eventually(lambda: replica.trouble is None)

    assert late is None
    assert "the replica is not read, the primary answers" in caplog.text


async def test_without_the_standby_the_primary_answers_at_once(pair: Pair):
    async with Replica.open(pair.database, "postgresql://postgres@127.0.0.1:1/gateway", size=2, max_lag=30) as replica:
        pair.database.replica = replica
        await pair.write("here")
        async with asyncio.timeout(1):
            found, as_of = await pair.database.read(pair.organization_id, names)
        pair.database.replica = None

    assert (found, as_of) == (["here"], None)


async def test_a_copy_of_the_cluster_that_is_no_standby_is_not_read(pair: Pair, database_url: str):
    """Such as a standby that was promoted; the clusters of tests are copies of one."""
    async with Replica.open(pair.database, database_url, size=2, max_lag=30) as replica:
        trouble = await eventually(lambda: "promoted" in (replica.trouble or "") and replica.trouble)

    assert trouble == "GATEWAY_DATABASE_READ_URL is a standby that was promoted"


async def test_an_error_on_the_standby_alone_is_answered_by_the_primary(pair: Pair, replica: Replica):
    """Such as a conflict with recovery, or a table that the standby does not have yet."""
    fails_there = "SELECT 1 / (CASE WHEN pg_is_in_recovery() THEN 0 ELSE 1 END)"

    found, as_of = await pair.database.read(pair.organization_id, reading(fails_there), is_current=False)

    assert (found, as_of) == (1, None)
