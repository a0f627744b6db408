"""What all tests share: a real PostgreSQL and Redis, from the wheels unless the environment names servers."""

import os
import shutil
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from uuid import uuid4

import asyncpg
import pytest

from gateway.db.migrate import migrate
from gateway.db.pool import Database
from gateway.embedded.postgres import EmbeddedPostgres
from gateway.embedded.redis import EmbeddedRedis


@pytest.fixture(scope="session")
def short_directory() -> Iterator[Path]:
    """A directory for the session with a short path, as unix sockets like it."""
    directory = Path(tempfile.mkdtemp(prefix="gw-"))
    yield directory
    shutil.rmtree(directory, ignore_errors=True)


@pytest.fixture(scope="session")
def postgres_url(short_directory: Path) -> Iterator[str]:
    """A PostgreSQL server; its own database is empty."""
    given = os.environ.get("GATEWAY_TEST_DATABASE_URL")
    if given:
        yield given
        return
    server = EmbeddedPostgres(short_directory / "postgres", durable=False)
    yield server.start()
    server.stop()


@pytest.fixture(scope="session")
def redis_url(short_directory: Path) -> Iterator[str]:
    """A Redis server."""
    given = os.environ.get("GATEWAY_TEST_REDIS_URL")
    if given:
        yield given
        return
    server = EmbeddedRedis(short_directory / "redis")
    yield server.start()
    server.stop()


@pytest.fixture(scope="session")
async def migrated_database(postgres_url: str) -> AsyncIterator[str]:
    """The name of a migrated database to make copies of."""
    async with created_database(postgres_url, "template1") as name:
        await migrate(url_of(postgres_url, name))
        yield name


@pytest.fixture(scope="module")
async def database_url(postgres_url: str, migrated_database: str) -> AsyncIterator[str]:
    """A migrated database for one module of tests."""
    async with created_database(postgres_url, migrated_database) as name:
        yield url_of(postgres_url, name)


@pytest.fixture(scope="module")
async def database(database_url: str) -> AsyncIterator[Database]:
    """The pool as the gateway opens it: as its own role, bound to a tenant."""
    async with Database.open(database_url, command_timeout=10) as opened:
        yield opened


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
