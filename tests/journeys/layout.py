"""The processes of a deployment, without containers: front ends on one port, workers, a stand-in for applications."""

import asyncio
import os
import signal
import sys
from asyncio.subprocess import Process
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import aiohttp
import msgspec

from gateway.kinds.catalog import load_catalog
from tests.running import PATIENCE, Api, free_port

KEYS = "k1:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="


class Layout:
    """Real processes, started and stopped one by one as an upgrade does it."""

    def __init__(self, directory: Path, environment: Mapping[str, str]) -> None:
        self.port, self.sandbox_port = free_port(), free_port()
        self.base_url = f"http://127.0.0.1:{self.port}"
        self.sandbox_url = f"http://127.0.0.1:{self.sandbox_port}"
        self._directory = directory
        upstreams = {
            f"GATEWAY_UPSTREAM_{kind.name.upper().replace('-', '_')}": self.sandbox_url for kind in load_catalog()
        }
        self.environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("GATEWAY_")},
            "GATEWAY_ENCRYPTION_KEYS": KEYS,
            "GATEWAY_BIND": f"127.0.0.1:{self.port}",
            "GATEWAY_DATA_DIR": str(directory / "data"),
            "GATEWAY_LOG_FORMAT": "json",
            "GATEWAY_SHUTDOWN_GRACE": "10",
            **upstreams,
            **environment,
        }
        self._running: dict[Process, str] = {}
        self._logs = 0

    async def start(self, *command: str, **environment: str) -> Process:
        """One more process; its log is kept."""
        self._logs += 1
        log = (self._directory / f"{command[0]}-{self._logs}.log").open("wb")
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "gateway", *command),
            env={**self.environment, **environment},
            stderr=log,
            stdout=log,
        )
        log.close()
        self._running[process] = command[0]
        return process

    async def front_end(self, **environment: str) -> Process:
        """A front end on the shared port; returns when it listens."""
        process = await self.start("serve", "--reuse-port", **environment)
        await self._said(f"serve-{self._logs}.log", "front end is listening", process)
        return process

    async def worker(self, **environment: str) -> Process:
        process = await self.start("worker", **environment)
        await self._said(f"worker-{self._logs}.log", "worker is ready", process)
        return process

    async def sandbox(self) -> Process:
        process = await self.start("sandbox", "--bind", f"127.0.0.1:{self.sandbox_port}")
        async with aiohttp.ClientSession() as session:
            await _until(lambda: _answers(session, f"{self.sandbox_url}/_sandbox/requests"), process)
        return process

    async def _said(self, name: str, words: str, process: Process) -> None:
        async def is_said() -> bool:
            return words in (self._directory / name).read_text()

        await _until(is_said, process)

    async def stop(self, process: Process) -> int:
        """As an orchestrator does: SIGTERM, then its end; the exit code."""
        process.send_signal(signal.SIGTERM)
        del self._running[process]
        return await process.wait()

    def running(self, command: str) -> list[Process]:
        """The processes of one sort, the oldest first."""
        return [process for process, its in self._running.items() if its == command]

    async def stop_all(self) -> None:
        for process in self._running:
            with suppress(ProcessLookupError):
                process.send_signal(signal.SIGTERM)
        for process in self._running:
            await process.wait()

    def log(self) -> str:
        """All that all processes have logged."""
        return "".join(path.read_text() for path in sorted(self._directory.glob("*.log")))

    def events(self) -> list[dict[str, Any]]:
        """What front ends and workers logged, each line an event."""
        lines = [line for path in self._directory.glob("[sw]*r*e*-*.log") for line in path.read_text().splitlines()]
        return [msgspec.json.decode(line) for line in lines if line.startswith("{")]

    async def admin(self, *arguments: str) -> dict[str, Any]:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "gateway", "admin", *arguments),
            env=self.environment,
            stdout=asyncio.subprocess.PIPE,
        )
        output, _ = await process.communicate()
        document: dict[str, Any] = msgspec.json.decode(output)
        return document

    async def client(self) -> tuple[str, str]:
        """Id and secret of a client that may do everything in an organization of its own."""
        organization = await self.admin("organization", "create", os.urandom(8).hex())
        scopes = [word for scope in ("read", "write", "admin") for word in ("--scope", scope)]
        client = await self.admin(
            "client", "create", "test", "--organization", organization["organization_id"], *scopes
        )
        return client["client_id"], client["client_secret"]

    @asynccontextmanager
    async def api(self) -> AsyncIterator[Api]:
        async with Api.of(self.base_url, *await self.client()) as api:
            yield api

    async def upstream_requests(self) -> list[dict[str, Any]]:
        """What the stand-in has received."""
        async with (
            aiohttp.ClientSession() as session,
            session.get(f"{self.sandbox_url}/_sandbox/requests") as response,
        ):
            found: list[dict[str, Any]] = (await response.json())["requests"]
            return found


@asynccontextmanager
async def laid_out(
    directory: Path, database_url: str, redis_url: str, *, front_ends: int = 1, workers: int = 1, **environment: str
) -> AsyncIterator[Layout]:
    """A layout that runs for as long as the block lasts."""
    stores = {"GATEWAY_DATABASE_URL": database_url, "GATEWAY_REDIS_URL": redis_url}
    layout = Layout(directory, {**stores, **environment})
    try:
        await layout.sandbox()
        for _ in range(workers):
            await layout.worker()
        for _ in range(front_ends):
            await layout.front_end()
        yield layout
    finally:
        await layout.stop_all()


async def _until(is_so: Any, process: Process) -> None:
    async with asyncio.timeout(PATIENCE):
        while not await is_so():
            assert process.returncode is None, "the process ended"
            await asyncio.sleep(0.02)


async def _answers(session: aiohttp.ClientSession, url: str) -> bool:
    try:
        async with session.get(url) as response:
            return response.status == 200
    except aiohttp.ClientError:
        return False
