"""Forward-only migrations: numbered SQL files, each applied once, by one process at a time."""

import re
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

import asyncpg

from gateway.errors import Unavailable
from gateway.foundation.db.presence import CONNECTION_ERRORS

#: the number of the advisory lock: any number that all gateways agree on
_LOCK = 0x67617465
_FILE = re.compile(r"(\d{4})_([a-z0-9_]+)\.sql")

_TABLE = """
    CREATE TABLE IF NOT EXISTS migrations (
        number integer PRIMARY KEY,
        name text NOT NULL,
        applied_at timestamptz NOT NULL DEFAULT now()
    )
"""
_APPLIED = "SELECT number FROM migrations"
_RECORD = "INSERT INTO migrations (number, name) VALUES ($1, $2)"
_TAKE_LOCK = "SELECT pg_advisory_lock($1)"
_TABLE_EXISTS = "SELECT to_regclass('migrations') IS NOT NULL"


@dataclass(frozen=True, slots=True)
class Migration:
    """One step of the schema, named for what it adds."""

    number: int
    name: str
    sql: str


def shipped_migrations() -> list[Migration]:
    """All migrations of this version, in order."""
    migrations = []
    for path in (files("gateway.foundation.db") / "migrations").iterdir():
        match = _FILE.fullmatch(path.name)
        if match:
            migrations.append(Migration(int(match[1]), match[2], path.read_text("utf-8")))
    return sorted(migrations, key=lambda migration: migration.number)


async def pending(url: str) -> list[Migration]:
    """The migrations that `migrate` would apply; the URL may be a pooler's."""
    connection = await _connected(url, statement_cache_size=0)
    try:
        applied = await _applied(connection) if await connection.fetchval(_TABLE_EXISTS) else set()
    finally:
        await connection.close()
    return [migration for migration in shipped_migrations() if migration.number not in applied]


async def migrate(url: str) -> list[Migration]:
    """Apply the missing migrations, each in a transaction; a second process waits and then finds none."""
    connection = await _connected(url)
    try:
        await connection.execute(_TAKE_LOCK, _LOCK)
        await connection.execute(_TABLE)
        applied = await _applied(connection)
        missing = [migration for migration in shipped_migrations() if migration.number not in applied]
        for migration in missing:
            async with connection.transaction():
                await connection.execute(migration.sql)
                await connection.execute(_RECORD, migration.number, migration.name)
        return missing
    finally:
        await connection.close()


async def _connected(url: str, **options: Any) -> "asyncpg.Connection[asyncpg.Record]":
    try:
        return await asyncpg.connect(url, timeout=10, **options)
    except CONNECTION_ERRORS as error:
        raise Unavailable("PostgreSQL cannot be reached") from error


async def _applied(connection: "asyncpg.Connection[asyncpg.Record]") -> set[int]:
    return {row["number"] for row in await connection.fetch(_APPLIED)}
