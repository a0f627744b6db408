"""Temporary databases."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from uuid import uuid4

import asyncpg

from gateway.foundation.db.pool import Database


@asynccontextmanager
async def created_database(server: str, template: str) -> AsyncIterator[str]:
    """A new database, which is dropped at the end of the block."""
    name = f"test_{uuid4().hex[:12]}"
    connection = await asyncpg.connect(server)
    try:
        await connection.execute(f"CREATE DATABASE {name} TEMPLATE {template}")
        yield name
        await connection.execute(f"DROP DATABASE {name} WITH (FORCE)")
    finally:
        await connection.close()


def url_of(server: str, name: str) -> str:
    """The server's URL with another database."""
    address, question, options = server.partition("?")
    return f"{address.rpartition('/')[0]}/{name}{question}{options}"


async def waits_for_lock(database: Database, statements: int = 1) -> bool:
    """Whether so many statements wait for locks of others."""
    async with database.system() as connection:
        waiting: int = await connection.fetchval("SELECT count(*) FROM pg_locks WHERE NOT granted")
    return waiting >= statements


async def rows_as_text(database: Database) -> list[tuple[str, str]]:
    """The table and the text of every row. Partitions are read through their table: the role may not read them."""
    async with database.system() as connection:
        tables = await connection.fetch("""
            SELECT relname::text AS name FROM pg_class
            WHERE relkind IN ('r', 'p') AND NOT relispartition AND relnamespace = 'public'::regnamespace
        """)
        return [
            (table["name"], row["row"])
            for table in tables
            for row in await connection.fetch(f'SELECT "{table["name"]}"::text AS row FROM "{table["name"]}"')
        ]


@asynccontextmanager
async def refusing(url: str, statement: str, sqlstate: str, *, when: str = "true") -> AsyncIterator[None]:
    """Within the block, PostgreSQL refuses `statement` ("UPDATE ON jobs") with this SQLSTATE."""
    owner = await asyncpg.connect(url)
    try:
        await owner.execute(f"""
            CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS
            $$ BEGIN RAISE EXCEPTION 'refused' USING ERRCODE = '{sqlstate}'; END $$;
            CREATE TRIGGER refusing BEFORE {statement} FOR EACH ROW WHEN ({when}) EXECUTE FUNCTION refuse()
        """)
        try:
            yield
        finally:
            await owner.execute("DROP FUNCTION refuse() CASCADE")
    finally:
        await owner.close()
