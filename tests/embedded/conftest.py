"""Short private directories, and the waiting for what happens in another process."""

from collections.abc import Callable, Iterator
from pathlib import Path

import asyncpg
import psutil
import pytest

from gateway.embedded.postgres import EmbeddedPostgres
from tests.harness.clusters import with_cluster
from tests.harness.folders import short_path


@pytest.fixture
def place() -> Iterator[Path]:
    """A directory of the test's own."""
    with short_path() as directory:
        yield directory


@pytest.fixture
def is_alive() -> Callable[[int], bool]:
    """Whether a process runs; a zombie that nobody has asked about does not."""

    def look(pid: int) -> bool:
        try:
            return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
        except psutil.NoSuchProcess:
            return False

    return look


@pytest.fixture
def new_postgres(place: Path) -> Iterator[EmbeddedPostgres]:
    """A server that has no cluster yet, stopped in any case."""
    server = EmbeddedPostgres(place / "postgres", durable=False)
    yield server
    server.stop()


@pytest.fixture
def postgres(new_postgres: EmbeddedPostgres) -> EmbeddedPostgres:
    """A server not started yet."""
    return with_cluster(new_postgres)


@pytest.fixture
def sql() -> Callable[[str, str], object]:
    """Run one statement on a connection of its own."""

    async def run(url: str, statement: str) -> object:
        connection = await asyncpg.connect(url)
        try:
            return await connection.fetchval(statement)
        finally:
            await connection.close()

    return run
