"""Short private directories, and the waiting for what happens in another process."""

import asyncio
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import asyncpg
import psutil
import pytest

from gateway.embedded.postgres import EmbeddedPostgres

#: seconds until a test gives up waiting
PATIENCE = 20.0


@pytest.fixture
def place() -> Iterator[Path]:
    """A directory of its own with a short path, as unix sockets like it."""
    directory = Path(tempfile.mkdtemp(prefix="gw-"))
    yield directory
    shutil.rmtree(directory)


@pytest.fixture
def eventually() -> Callable[[Callable[[], bool]], None]:
    """Wait until something outside this process has happened."""

    def wait(happened: Callable[[], bool]) -> None:
        deadline = time.monotonic() + PATIENCE
        while not happened():
            assert time.monotonic() < deadline, "it did not happen in time"
            time.sleep(0.02)

    return wait


@pytest.fixture
def soon() -> Callable[[Callable[[], bool]], object]:
    """`eventually` for a test that has the event loop to keep running."""

    async def wait(happened: Callable[[], bool]) -> None:
        async with asyncio.timeout(PATIENCE):
            while not happened():  # noqa: ASYNC110  it happens in another process
                await asyncio.sleep(0.02)

    return wait


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
