"""Forward-only migrations: numbered SQL files, each applied once, by one process at a time.

The table `migrations` has the number, the name and the hash of each applied file, so that a database of another history
is refused.
"""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from hashlib import sha256
from importlib import metadata
from importlib.resources import files
from typing import Any

import asyncpg

from gateway.errors import Unavailable
from gateway.foundation.db.presence import UNUSABLE
from gateway.foundation.db.servers import DatabaseServers

#: the number of the advisory lock: any number that all gateways agree on
_LOCK = 0x67617465
_FILE = re.compile(r"(\d{4})_([a-z0-9_]+)\.sql")

# Earlier versions recorded neither hash nor version.
_TABLE = """
    CREATE TABLE IF NOT EXISTS migrations (
        number integer PRIMARY KEY,
        name text NOT NULL,
        applied_at timestamptz NOT NULL DEFAULT now()
    )
"""
_MORE_COLUMNS = "ALTER TABLE migrations ADD COLUMN IF NOT EXISTS hash text, ADD COLUMN IF NOT EXISTS version text"
_APPLIED = "SELECT * FROM migrations ORDER BY number"
_RECORD = "INSERT INTO migrations (number, name, hash, version) VALUES ($1, $2, $3, $4)"
_SET_HASH = "UPDATE migrations SET hash = $2 WHERE number = $1 AND hash IS NULL"
_TAKE_LOCK = "SELECT pg_advisory_lock($1)"
_TABLE_EXISTS = "SELECT to_regclass('migrations') IS NOT NULL"

_OTHER_DATABASE = (
    "set GATEWAY_DATABASE_URL to the database of this gateway or to an empty one, or install the version that "
    "created this schema"
)


class SchemaError(Exception):
    """This version cannot use the schema of the database; the message says why and what to do."""


@dataclass(frozen=True, slots=True)
class Migration:
    """One step of the schema, named for what it adds."""

    number: int
    name: str
    sql: str

    @property
    def hash(self) -> str:
        return sha256(self.sql.encode()).hexdigest()

    def __str__(self) -> str:
        return f"{self.number:04d} {self.name}"


@dataclass(frozen=True, slots=True)
class Applied:
    """A migration of the database; `hash` and `version` (of the gateway) are None if they were not recorded."""

    number: int
    name: str
    hash: str | None = None
    version: str | None = None


def shipped_migrations() -> list[Migration]:
    """All migrations of this version, in order."""
    migrations = []
    for path in (files("gateway.foundation.db") / "migrations").iterdir():
        match = _FILE.fullmatch(path.name)
        if match:
            migrations.append(Migration(int(match[1]), match[2], path.read_text("utf-8")))
    return sorted(migrations, key=lambda migration: migration.number)


def installed_version() -> str:
    return metadata.version("agent-connector-gateway")


def missing_of(applied: Collection[Applied], shipped: Sequence[Migration], version: str) -> list[Migration]:
    """The shipped migrations that are not applied; raises SchemaError for a schema of another history.

    Migrations that only a newer version has are accepted if its major version is the same, because migrations of one
    major version only add.
    """
    known = {migration.number: migration for migration in shipped}
    for each in applied:
        migration = known.get(each.number)
        if migration is None:
            _require_compatible(each, version)
        elif migration.name != each.name:
            raise SchemaError(
                f"PostgreSQL has a schema of another history: its migration {each.number:04d} is {each.name}, that of "
                f"version {version} is {migration.name}; {_OTHER_DATABASE}"
            )
        elif each.hash not in (None, migration.hash):
            raise SchemaError(
                f"PostgreSQL has a schema of another history: its migration {migration} had other statements than "
                f"that of version {version}; {_OTHER_DATABASE}"
            )
    numbers = {each.number for each in applied}
    return [migration for migration in shipped if migration.number not in numbers]


def _require_compatible(newer: Applied, version: str) -> None:
    found = f"{newer.number:04d} {newer.name}"
    if newer.version is None:
        raise SchemaError(
            f"PostgreSQL has a schema of another history: version {version} has no migration {found}; {_OTHER_DATABASE}"
        )
    if newer.version.partition(".")[0] != version.partition(".")[0]:
        raise SchemaError(
            f"PostgreSQL has the schema of version {newer.version}, whose migration {found} version {version} cannot "
            f"use; install version {newer.version} or later"
        )


async def applied_migrations(connection: Any) -> list[Applied]:
    """The migrations of the database, in order; raises SchemaError if its table is another application's."""
    if not await connection.fetchval(_TABLE_EXISTS):
        return []
    try:
        return [
            Applied(row["number"], row["name"], row.get("hash"), row.get("version"))
            for row in await connection.fetch(_APPLIED)
        ]
    except (KeyError, asyncpg.UndefinedColumnError) as error:
        raise SchemaError(f"PostgreSQL has a table `migrations` of another application; {_OTHER_DATABASE}") from error


async def require_schema(connection: Any) -> None:
    """Raise SchemaError unless the schema is that of this version, or of a compatible newer one."""
    missing = missing_of(await applied_migrations(connection), shipped_migrations(), installed_version())
    if missing:
        raise SchemaError(
            f"PostgreSQL has an older schema, without the migration {missing[0]} of this version; run `gateway migrate`"
        )


async def pending(url: str) -> list[Migration]:
    """The migrations that `migrate` would apply; the URL may be a pooler's. Raises SchemaError."""
    connection = await _connect(url, statement_cache_size=0)
    try:
        return missing_of(await applied_migrations(connection), shipped_migrations(), installed_version())
    finally:
        await connection.close()


async def migrate(url: str) -> list[Migration]:
    """Apply the missing migrations, each in a transaction; a second process waits and then finds none.

    Raises SchemaError, and changes nothing, if the schema is of another history.
    """
    connection, shipped, version = await _connect(url), shipped_migrations(), installed_version()
    try:
        await connection.execute(_TAKE_LOCK, _LOCK)
        missing = missing_of(await applied_migrations(connection), shipped, version)
        await connection.execute(_TABLE)
        await connection.execute(_MORE_COLUMNS)
        await connection.executemany(_SET_HASH, [(each.number, each.hash) for each in shipped if each not in missing])
        for migration in missing:
            async with connection.transaction():
                await _apply(connection, migration)
                await connection.execute(_RECORD, migration.number, migration.name, migration.hash, version)
        return missing
    finally:
        await connection.close()


async def _apply(connection: "asyncpg.Connection[asyncpg.Record]", migration: Migration) -> None:
    """Execute the statements of a migration; an object of theirs that exists already is not the gateway's."""
    try:
        await connection.execute(migration.sql)
    except (asyncpg.DuplicateTableError, asyncpg.DuplicateObjectError, asyncpg.DuplicateColumnError) as error:
        raise SchemaError(
            f"PostgreSQL has objects that the migration {migration} creates ({error}); {_OTHER_DATABASE}"
        ) from error


async def _connect(url: str, **options: Any) -> "asyncpg.Connection[asyncpg.Record]":
    try:
        return await DatabaseServers(url).connect(timeout=10, **options)
    except UNUSABLE as error:
        raise Unavailable("PostgreSQL cannot be reached") from error
