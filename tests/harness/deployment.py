"""The processes of a deployment, without containers: front ends on one port or each on its own, and workers."""

import os
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec

from tests.harness.caller import Api
from tests.harness.clients import NewClient, new_client_in
from tests.harness.processes import KEYS, Gateway, Program, bare_environment, free_port, upstreams_at
from tests.harness.sandbox import received_requests, sandbox


class Deployment:
    """Real processes on stores that are there, started and stopped one by one as an upgrade does it."""

    def __init__(
        self, directory: Path, database_url: str, redis_url: str, upstream_url: str, settings: Mapping[str, str]
    ) -> None:
        self.upstream_url = upstream_url
        self.front_ends: list[Program] = []
        self.workers: list[Program] = []
        self._directory = directory
        self._port = free_port()
        self.environment = {
            **bare_environment(),
            "GATEWAY_DATABASE_URL": database_url,
            "GATEWAY_REDIS_URL": redis_url,
            "GATEWAY_ENCRYPTION_KEYS": KEYS,
            "GATEWAY_DATA_DIR": str(directory / "data"),
            "GATEWAY_LOG_FORMAT": "json",
            "GATEWAY_SHUTDOWN_GRACE": "10",
            **upstreams_at(upstream_url),
            **settings,
        }
        self._programs = 0

    @property
    def base_url(self) -> str:
        """Where the front ends that share a port answer."""
        return f"http://127.0.0.1:{self._port}"

    async def front_end(self, **settings: str) -> Program:
        """A front end on the shared port, that listens."""
        return await self._front_end(self._port, "--reuse-port", **settings)

    async def front_end_apart(self, **settings: str) -> Program:
        """A front end on a port of its own, that listens."""
        return await self._front_end(free_port(), **settings)

    async def _front_end(self, port: int, *options: str, **settings: str) -> Program:
        command = ("serve", "--bind", f"127.0.0.1:{port}", *options)
        program = self._program("front-end", "front end is listening", command, settings)
        self.front_ends.append(program)
        await program.start()
        return program

    async def worker(self, **settings: str) -> Program:
        """A worker that takes jobs."""
        program = self._program("worker", "worker is ready", ("worker",), settings)
        self.workers.append(program)
        await program.start()
        return program

    def _program(self, role: str, ready: str, command: tuple[str, ...], settings: Mapping[str, str]) -> Program:
        self._programs += 1
        log = self._directory / f"{role}-{self._programs}.log"
        return Gateway(*command, environment={**self.environment, **settings}, log=log, ready=ready)

    async def stop(self, program: Program) -> int:
        """As an orchestrator does: SIGTERM, then its end; the exit code."""
        for programs in (self.front_ends, self.workers):
            if program in programs:
                programs.remove(program)
        return await program.stop()

    async def close(self) -> None:
        """Ends all at once; what they logged as errors is shown, for a test that failed."""
        for program in (*self.front_ends, *self.workers):
            await program.kill()
        errors = [event for event in self.events() if event.get("level") in ("error", "critical")]
        sys.stderr.writelines(f"{event}{os.linesep}" for event in errors)

    def log(self) -> str:
        """All that all processes have logged."""
        return "".join(path.read_text() for path in sorted(self._directory.glob("*.log")))

    def events(self) -> list[dict[str, Any]]:
        """What front ends and workers logged, each line an event."""
        return [msgspec.json.decode(line) for line in self.log().splitlines() if line.startswith("{")]

    async def client(self) -> NewClient:
        """A client that may do everything in an organization of its own."""
        return await new_client_in(self.environment["GATEWAY_DATABASE_URL"])

    @asynccontextmanager
    async def api(self, client: NewClient | None = None) -> AsyncIterator[Api]:
        """A caller at the shared port with a new token: this client, or one of a new organization."""
        client = client or await self.client()
        async with Api.of(self.base_url, client.id, client.secret) as api:
            yield api

    async def upstream_requests(self) -> list[dict[str, Any]]:
        """What the sandbox has received."""
        return await received_requests(self.upstream_url)


@asynccontextmanager
async def deployed(
    directory: Path, database_url: str, redis_url: str, *, front_ends: int = 1, workers: int = 1, **settings: str
) -> AsyncIterator[Deployment]:
    """A deployment whose applications are all played by the sandbox, for as long as the block lasts."""
    async with sandbox(directory) as upstream_url:
        deployment = Deployment(directory, database_url, redis_url, upstream_url, settings)
        try:
            for _ in range(workers):
                await deployment.worker()
            for _ in range(front_ends):
                await deployment.front_end()
            yield deployment
        finally:
            await deployment.close()
