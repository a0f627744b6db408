"""The command line as people and scripts run it: a process, its two streams and its exit code."""

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from aiohttp.test_utils import TestServer

from tests.client.stub import Stub


@dataclass(frozen=True)
class Ended:
    """A command that has ended."""

    code: int
    out: str
    err: str

    def json(self) -> Any:
        return json.loads(self.out)

    def lines(self) -> list[Any]:
        return [json.loads(line) for line in self.out.splitlines()]


@pytest.fixture
def stub() -> Stub:
    return Stub()


@pytest.fixture
async def server(stub: Stub) -> AsyncIterator[TestServer]:
    async with TestServer(stub.application()) as server:
        yield server


@pytest.fixture
def environment(server: TestServer, tmp_path: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GATEWAY_")}
    return {
        **kept,
        "GATEWAY_URL": str(server.make_url("")).rstrip("/"),
        "GATEWAY_CLIENT_ID": "id",
        "GATEWAY_CLIENT_SECRET": "s3cret",
        "COLUMNS": "120",
    }


@pytest.fixture
def start(environment: dict[str, str], tmp_path: Path) -> Callable[..., Awaitable[asyncio.subprocess.Process]]:
    """`await start("call", …)`: a command that is still running, in a folder of its own."""

    async def started(*words: str, **variables: str) -> asyncio.subprocess.Process:
        return await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "gateway", *words),
            env={**environment, **variables},
            cwd=tmp_path,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )

    return started


@pytest.fixture
def command(start: Callable[..., Awaitable[asyncio.subprocess.Process]]) -> Callable[..., Awaitable[Ended]]:
    """`await command("call", …)`: a command run to its end."""

    async def run(*words: str, stdin: bytes = b"", **variables: str) -> Ended:
        process = await start(*words, **variables)
        out, err = await process.communicate(stdin)
        return Ended(process.returncode or 0, out.decode(), err.decode())

    return run
