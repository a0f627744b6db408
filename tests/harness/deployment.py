"""The processes of a deployment without containers: front ends, on one port or several, and workers."""

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
    """Processes on existing stores, started and stopped one by one as in an upgrade."""

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
        """The URL of the front ends that share a port."""
        return f"http://127.0.0.1:{self._port}"

    async def front_end(self, **settings: str) -> Program:
        """Start a front end on the shared port."""
        return await self._front_end(self._port, "--reuse-port", **settings)

    async def front_end_apart(self, **settings: str) -> Program:
        """Start a front end on another port."""
        return await self._front_end(free_port(), **settings)

    async def _front_end(self, port: int, *options: str, **settings: str) -> Program:
        command = ("serve", "--bind", f"127.0.0.1:{port}", *options)
        program = self._program("front-end", "front end is listening", command, settings)
        self.front_ends.append(program)
        await program.start()
        return program

    async def worker(self, **settings: str) -> Program:
        """Start a worker."""
        program = self._program("worker", "worker is ready", ("worker",), settings)
        self.workers.append(program)
        await program.start()
        return program

    def _program(self, role: str, ready: str, command: tuple[str, ...], settings: Mapping[str, str]) -> Program:
        self._programs += 1
        log = self._directory / f"{role}-{self._programs}.log"
        return Gateway(*command, environment={**self.environment, **settings}, log=log, ready=ready)

    async def stop(self, program: Program) -> int:
        """Send SIGTERM as an orchestrator does, and wait for the end; returns the exit code."""
        for programs in (self.front_ends, self.workers):
            if program in programs:
                programs.remove(program)
        return await program.stop()

    async def close(self) -> None:
        """Kill all processes, and print the errors that they logged, for failed tests."""
        for program in (*self.front_ends, *self.workers):
            await program.kill()
        errors = [event for event in self.events() if event.get("level") in ("error", "critical")]
        sys.stderr.writelines(f"{event}{os.linesep}" for event in errors)

    def log(self) -> str:
        """The logs of all processes."""
        return "".join(path.read_text() for path in sorted(self._directory.glob("*.log")))

    def events(self) -> list[dict[str, Any]]:
        """The log events of all processes."""
        return [msgspec.json.decode(line) for line in self.log().splitlines() if line.startswith("{")]

    async def client(self) -> NewClient:
        """A client with all scopes in a new organization."""
        return await new_client_in(self.environment["GATEWAY_DATABASE_URL"])

    @asynccontextmanager
    async def api(self, client: NewClient | None = None) -> AsyncIterator[Api]:
        """A caller at the shared port, for this client or a new one."""
        client = client or await self.client()
        async with Api.of(self.base_url, client.id, client.secret) as api:
            yield api

    async def upstream_requests(self) -> list[dict[str, Any]]:
        """The requests that the sandbox has received."""
        return await received_requests(self.upstream_url)


@asynccontextmanager
async def deployed(
    directory: Path, database_url: str, redis_url: str, *, front_ends: int = 1, workers: int = 1, **settings: str
) -> AsyncIterator[Deployment]:
    """A deployment whose applications are the sandbox, within the block."""
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
