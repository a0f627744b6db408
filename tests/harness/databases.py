"""Databases that exist for as long as a test needs them."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from uuid import uuid4

import asyncpg


@asynccontextmanager
async def created_database(server: str, template: str) -> AsyncIterator[str]:
    """A database that exists for as long as the block lasts."""
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


@asynccontextmanager
async def refusing(url: str, statement: str, sqlstate: str, *, when: str = "true") -> AsyncIterator[None]:
    """PostgreSQL answers `statement` ("UPDATE ON jobs") with this SQLSTATE for as long as the block lasts."""
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
