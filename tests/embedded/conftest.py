"""Short private directories, local servers, and statements on them."""

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
    """A temporary directory with a short path."""
    with short_path() as directory:
        yield directory


@pytest.fixture
def is_alive() -> Callable[[int], bool]:
    """Whether a process runs; a zombie does not."""

    def look(pid: int) -> bool:
        try:
            return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
        except psutil.NoSuchProcess:
            return False

    return look


@pytest.fixture
def new_postgres(place: Path) -> Iterator[EmbeddedPostgres]:
    """A server without a cluster; it is stopped after the test."""
    server = EmbeddedPostgres(place / "postgres", durable=False)
    yield server
    server.stop()


@pytest.fixture
def postgres(new_postgres: EmbeddedPostgres) -> EmbeddedPostgres:
    """A server with a cluster, not started."""
    return with_cluster(new_postgres)


@pytest.fixture
def sql() -> Callable[[str, str], object]:
    """Run one statement on a new connection."""

    async def run(url: str, statement: str) -> object:
        connection = await asyncpg.connect(url)
        try:
            return await connection.fetchval(statement)
        finally:
            await connection.close()

    return run
