"""Short private directories, and the waiting for what happens in another process."""

import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import asyncpg
import psutil
import pytest

from gateway.embedded.postgres import EmbeddedPostgres


@contextmanager
def short_path() -> Iterator[Path]:
    """A new directory with a short path, as unix sockets like it."""
    directory = Path(tempfile.mkdtemp(prefix="gw-"))
    yield directory
    shutil.rmtree(directory)


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
def postgres(place: Path) -> Iterator[EmbeddedPostgres]:
    """A server not started yet, stopped in any case."""
    server = EmbeddedPostgres(place / "postgres", durable=False)
    yield server
    server.stop()


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
