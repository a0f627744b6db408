"""The request log of an earlier version becomes a partition: with its rows, and beside processes of that version."""

import asyncio
from collections.abc import AsyncIterator
from uuid import UUID, uuid4

import asyncpg
import pytest

from gateway.foundation.db.migrate import migrate, shipped_migrations
from gateway.foundation.db.pool import Database
from tests.harness.databases import created_database, url_of

NUMBER = 99
OWN, OTHER, CONNECTOR = uuid4(), uuid4(), uuid4()
#: statements of version 1 on the table, which its processes have prepared
INSERT = """
    INSERT INTO request_log (organization_id, connector_id, at, method, path, duration_ms, attempt, bytes_in, bytes_out)
    SELECT $1, $2, now() - make_interval(hours => number), 'GET', '/' || number, 1, 1, 0, 0
    FROM generate_series(1, $3::integer) AS number
"""
FIND = "SELECT id, path FROM request_log WHERE organization_id = $1 ORDER BY id DESC LIMIT 100"
PRUNE = """
    WITH old AS (
        SELECT id FROM request_log
        WHERE at < now() - make_interval(hours => 36, mins => 30) OR id <= (SELECT max(id) - 30 FROM request_log)
        LIMIT $1 FOR UPDATE SKIP LOCKED
    )
    DELETE FROM request_log USING old WHERE request_log.id = old.id
"""
REMOVE = """
    DELETE FROM request_log WHERE id IN (
        SELECT id FROM request_log WHERE organization_id = $1 AND connector_id = $2 LIMIT $3
    )
"""


@pytest.fixture
async def former_url(postgres_url: str) -> AsyncIterator[str]:
    """A database of the version before partitions."""
    async with created_database(postgres_url, "template1") as name:
        url = url_of(postgres_url, name)
        connection = await asyncpg.connect(url)
        await connection.execute(
            "CREATE TABLE migrations (number integer PRIMARY KEY, name text NOT NULL, "
            "applied_at timestamptz NOT NULL DEFAULT now())"
        )
        for each in shipped_migrations():
            if each.number < NUMBER:
                await connection.execute(each.sql)
                await connection.execute("INSERT INTO migrations VALUES ($1, $2)", each.number, each.name)
        await connection.close()
        yield url


async def found(database: Database, organization_id: UUID) -> list[tuple[int, str]]:
    async with database.tenant(organization_id) as connection:
        return [tuple(row) for row in await connection.fetch(FIND, organization_id)]


async def insert(database: Database, organization_id: UUID, rows: int) -> None:
    async with database.system() as connection:
        await connection.execute(INSERT, organization_id, CONNECTOR, rows)


async def test_rows_and_ids_go_on_as_they_were(former_url: str):
    async with Database.open(former_url) as database:
        await insert(database, OWN, 2)
        await insert(database, OTHER, 1)
        before = await found(database, OWN)

        await migrate(former_url)
        await insert(database, OWN, 1)

        assert before == [(2, "/2"), (1, "/1")]
        assert await found(database, OWN) == [(4, "/1"), *before]
        assert await found(database, OTHER) == [(3, "/1")]


async def test_the_statements_of_the_version_before_work_on_partitions(former_url: str):
    async with Database.open(former_url) as database:
        await insert(database, OWN, 3)
        await migrate(former_url)
        async with database.system() as connection:
            await connection.execute("SELECT gateway_continue_request_log()")
        await insert(database, OWN, 40)

        async with database.system() as connection:
            pruned = await connection.execute(PRUNE, 500)
        async with database.tenant(OWN) as connection:
            removed = await connection.execute(REMOVE, OWN, CONNECTOR, 7)

        # Of 43 rows, four of the last 30 are older than 36.5 hours.
        assert pruned == "DELETE 17"
        assert removed == "DELETE 7"
        assert len(await found(database, OWN)) == 19


async def test_processes_that_run_meanwhile_lose_no_row(former_url: str):
    async with Database.open(former_url) as database:
        await insert(database, OWN, 1)
        migrating = asyncio.create_task(migrate(former_url))
        rounds = 1
        while not migrating.done():
            await asyncio.gather(insert(database, OWN, 1), insert(database, OTHER, 1), found(database, OWN))
            rounds += 1
        await migrating

        async with database.system() as connection:
            assert await connection.fetchval("SELECT count(*) FROM request_log") == 2 * rounds - 1
        assert rounds > 2
