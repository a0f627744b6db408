"""Migrations: each applied once, whoever starts at the same time, and refused by nobody who runs."""

import asyncio
import re
from pathlib import Path

import asyncpg
import pytest

from gateway.foundation.db.migrate import migrate, pending, shipped_migrations
from tests.harness.command_line import invoked
from tests.harness.databases import created_database, url_of

#: what an older version that still runs would stumble over; such a change waits for the release after next
CONTRACTING = re.compile(r"\b(DROP\s+(TABLE|COLUMN)|RENAME\s+(TO|COLUMN)|ALTER\s+COLUMN\s+\w+\s+TYPE)\b", re.IGNORECASE)


@pytest.fixture
async def empty_database(postgres_url: str):
    async with created_database(postgres_url, "template1") as name:
        yield url_of(postgres_url, name)


async def applied(url: str) -> list[tuple[int, str]]:
    connection = await asyncpg.connect(url)
    rows = await connection.fetch("SELECT number, name FROM migrations ORDER BY number")
    await connection.close()
    return [tuple(row) for row in rows]


def test_migrations_are_numbered_without_repeat():
    numbers = [migration.number for migration in shipped_migrations()]

    assert numbers == sorted(set(numbers))


@pytest.mark.parametrize("migration", shipped_migrations(), ids=lambda migration: migration.name)
def test_no_migration_takes_away_what_a_running_version_uses(migration):
    statements = re.sub(r"--[^\n]*", "", migration.sql)

    assert not CONTRACTING.search(statements)


async def test_an_empty_database_gets_everything_once(empty_database: str):
    missing_before = await pending(empty_database)

    first, second = await migrate(empty_database), await migrate(empty_database)

    assert first == missing_before == shipped_migrations()
    assert second == []
    assert await pending(empty_database) == []
    assert await applied(empty_database) == [(each.number, each.name) for each in shipped_migrations()]


async def test_two_that_start_at_once_apply_each_migration_once(empty_database: str):
    outcomes = await asyncio.gather(*(migrate(empty_database) for _ in range(4)))

    assert sorted(map(len, outcomes)) == [0, 0, 0, len(shipped_migrations())]
    assert await applied(empty_database) == [(each.number, each.name) for each in shipped_migrations()]


async def test_a_migration_that_fails_leaves_nothing_of_itself(empty_database: str):
    connection = await asyncpg.connect(empty_database)
    await connection.execute("CREATE TABLE clients (in_the_way integer)")

    with pytest.raises(asyncpg.DuplicateTableError):
        await migrate(empty_database)

    assert await connection.fetchval("SELECT to_regclass('organizations')") is None
    await connection.execute("DROP TABLE clients")
    await connection.close()
    assert await migrate(empty_database) == shipped_migrations()


async def test_the_command_says_what_is_missing_by_its_exit_code(empty_database: str, tmp_path: Path):
    environment = {"GATEWAY_DATABASE_URL": empty_database}

    async def command(*arguments: str) -> tuple[int, str]:
        ended = await invoked("migrate", *arguments, environment=environment, directory=tmp_path)
        return ended.code, ended.out

    before, done, after = await command("--check"), await command(), await command("--check")

    assert before[0] == 1
    assert "missing: 0001 identity" in before[1]
    assert done[0] == 0
    assert after == (0, "")
