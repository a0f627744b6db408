"""Fixtures of all tests: PostgreSQL and Redis, from the wheels unless the environment names servers."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from gateway.embedded.postgres import EmbeddedPostgres
from gateway.embedded.redis import EmbeddedRedis
from gateway.foundation.db.migrate import migrate
from gateway.foundation.db.pool import Database
from tests.harness import pauses
from tests.harness.clusters import remove_unused, with_cluster
from tests.harness.databases import created_database, url_of
from tests.harness.folders import short_path
from tests.harness.selection import (  # noqa: F401  hooks
    pytest_collection_finish,
    pytest_collection_modifyitems,
    pytest_runtest_setup,
    pytest_runtest_teardown,
    pytest_sessionstart,
)
from tests.harness.typescript import NPM, packed
from tests.harness.waiting import PATIENCE

if TYPE_CHECKING:
    from tests.harness.up import Running


# A shell ignores SIGINT for a run in the background, and so would the programs that tests interrupt.
signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_sessionfinish() -> None:
    remove_unused()


@pytest.fixture
async def skipped_pauses() -> AsyncIterator[None]:
    """Skips pauses between retries and between rounds."""
    with pauses.skipped(asyncio.get_running_loop()):
        yield


@pytest.fixture(scope="session")
def short_directory() -> Iterator[Path]:
    """A directory for the session, with a path that is short enough for unix sockets."""
    with short_path() as directory:
        yield directory


@pytest.fixture(scope="session")
def postgres_url(short_directory: Path) -> Iterator[str]:
    """A PostgreSQL server with an empty database."""
    given = os.environ.get("GATEWAY_TEST_DATABASE_URL")
    if given:
        yield given
        return
    server = with_cluster(EmbeddedPostgres(short_directory / "postgres", durable=False))
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
    """The name of a migrated database, the template of the others."""
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
    """The pool as the gateway opens it."""
    async with Database.open(database_url, command_timeout=10) as opened:
        yield opened


@pytest.fixture
def sql(database: Database) -> Callable[..., Any]:
    """`await sql(query, *arguments)`: rows, without the gateway's stores."""

    async def run(query: str, *arguments: Any) -> list[Any]:
        async with database.system() as connection:
            return list(await connection.fetch(query, *arguments, timeout=PATIENCE))

    return run


@pytest.fixture(scope="session")
async def npm_package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tarball of the TypeScript package; no file if the programs that pack it are missing."""
    return await packed(tmp_path_factory.mktemp("npm")) if NPM else Path("missing")


@pytest.fixture(scope="session")
async def running(
    postgres_url: str, redis_url: str, migrated_database: str, short_directory: Path
) -> AsyncIterator["Running"]:
    """`gateway up --sandbox` on the session's stores, shared by all journeys."""
    from tests.harness.up import brought_up_with_sandbox  # imported here, because the contract takes a second to import

    async with created_database(postgres_url, migrated_database) as name:
        environment = {
            **os.environ,
            "GATEWAY_REDIS_URL": redis_url,
            "GATEWAY_INLINE_BUDGET": "5",
            # Journeys count the requests of the application; those of the copies have another gateway.
            "GATEWAY_SYNCHRONIZE": "false",
            "GATEWAY_LOG_LEVEL": "warning",
        }
        async with brought_up_with_sandbox(short_directory, url_of(postgres_url, name), environment) as opened:
            yield opened
