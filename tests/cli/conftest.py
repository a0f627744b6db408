"""Runs commands against the stub server of the client tests, in this process or in a child process."""

from asyncio.subprocess import Process
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest
from aiohttp.test_utils import TestServer

from tests.client.stub import Stub
from tests.harness.command_line import Ended, invoked, ran, started
from tests.harness.processes import bare_environment


@pytest.fixture
def stub() -> Stub:
    return Stub()


@pytest.fixture
async def server(stub: Stub) -> AsyncIterator[TestServer]:
    async with stub.serving() as server:
        yield server


@pytest.fixture
def environment(server: TestServer) -> dict[str, str]:
    return {
        **bare_environment(),
        "GATEWAY_URL": str(server.make_url("")).rstrip("/"),
        "GATEWAY_CLIENT_ID": "id",
        "GATEWAY_CLIENT_SECRET": "s3cret",
        "COLUMNS": "120",
    }


@pytest.fixture
def command(environment: dict[str, str], tmp_path: Path) -> Callable[..., Awaitable[Ended]]:
    """`await command("call", …)` runs a command in this process, in a temporary folder."""

    async def run(*words: str, stdin: bytes = b"", **variables: str) -> Ended:
        return await invoked(*words, environment={**environment, **variables}, directory=tmp_path, stdin=stdin)

    return run


@pytest.fixture
def process(environment: dict[str, str], tmp_path: Path) -> Callable[..., Awaitable[Ended]]:
    """`await process("call", …)` runs a command in a child process, for tests of imports and of shell completion."""

    async def run(*words: str, **variables: str) -> Ended:
        return await ran(*words, environment={**environment, **variables}, directory=tmp_path)

    return run


@pytest.fixture
def start(environment: dict[str, str], tmp_path: Path) -> Callable[..., Awaitable[Process]]:
    """`await start("call", …)` starts a child process, for tests of signals and pipes."""

    async def run(*words: str, **variables: str) -> Process:
        return await started(*words, environment={**environment, **variables}, directory=tmp_path)

    return run
