"""A gateway of real processes on stores of its own, all of which may be killed, frozen and started again."""

import asyncio
import os
import shutil
import signal
import socket
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import asyncpg
from redis.asyncio import Redis

from gateway.credentials.vault import new_key
from gateway.db.migrate import migrate
from gateway.db.pool import Database
from gateway.embedded.postgres import EmbeddedPostgres
from gateway.embedded.redis import EmbeddedRedis
from gateway.embedded.server import LocalServer
from gateway.identity.store import IdentityStore
from gateway.identity.tokens import hashed
from tests.faults.upstream import Upstream

#: seconds for anything that must come about
PATIENCE = 60.0
SECRET = "secret"
CREDENTIALS = {"email": "agent@example.com", "api_token": "token", "subdomain": "acme"}
_CONNECTORS = "/api/v1/integrations/connectors"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@dataclass
class Part:
    """One process of the gateway: a front end or a worker."""

    arguments: tuple[str, ...]
    environment: dict[str, str]
    process: asyncio.subprocess.Process | None = None

    async def start(self) -> None:
        self.process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "gateway", *self.arguments, env={**os.environ, **self.environment}
        )

    @property
    def pid(self) -> int:
        assert self.process is not None
        return self.process.pid

    async def signal(self, sign: signal.Signals) -> None:
        if self.process is not None and self.process.returncode is None:
            self.process.send_signal(sign)

    async def kill(self) -> None:
        await self.signal(signal.SIGKILL)
        await self.ended()

    async def ended(self) -> int:
        assert self.process is not None
        return await self.process.wait()


@dataclass
class Arena:
    """Stores, front ends and workers."""

    postgres: LocalServer
    redis: LocalServer
    upstream: Upstream
    servers: ThreadPoolExecutor
    environment: dict[str, str]
    client_id: str = ""
    organization_id: str = ""
    fronts: list[Part] = field(default_factory=list)
    workers: list[Part] = field(default_factory=list)

    async def in_servers(self, call: Any) -> Any:
        """Servers end with the thread that started them, so one thread starts them all."""
        return await asyncio.get_running_loop().run_in_executor(self.servers, call)

    async def restart(self, server: LocalServer, *, down: float = 0.0) -> None:
        """kill -9, and a new start after so many seconds."""
        assert server.pid is not None
        os.kill(server.pid, signal.SIGKILL)
        await asyncio.sleep(down)
        await self.in_servers(server.stop)
        await self.in_servers(server.start)

    async def flush_redis(self) -> None:
        async with Redis.from_url(self.environment["GATEWAY_REDIS_URL"]) as redis:
            await redis.flushall()

    async def add_front(self) -> Part:
        """A front end that answers."""
        part = Part(("serve", "--bind", f"127.0.0.1:{free_port()}"), self.environment)
        await part.start()
        self.fronts.append(part)
        await self.answering(part)
        return part

    async def add_worker(self) -> Part:
        part = Part(("worker",), self.environment)
        await part.start()
        self.workers.append(part)
        return part

    def url_of(self, front: Part) -> str:
        return f"http://{front.arguments[-1]}"

    async def answering(self, front: Part) -> None:
        async with aiohttp.ClientSession() as session, asyncio.timeout(PATIENCE):
            while not await _answers(session, self.url_of(front) + "/healthz"):  # noqa: ASYNC110  another process
                await asyncio.sleep(0.05)

    async def workers_ready(self) -> None:
        """Every worker has given a sign of life."""
        async with asyncio.timeout(PATIENCE):
            while await self.value("SELECT count(*) FROM workers") < len(self.workers):  # noqa: ASYNC110  another process
                await asyncio.sleep(0.05)

    async def value(self, query: str, *arguments: Any) -> Any:
        """A single value from the database, read beside the gateway."""
        rows = await self.rows(query, *arguments)
        return rows[0][0] if rows else None

    async def rows(self, query: str, *arguments: Any) -> list[Any]:
        connection = await asyncpg.connect(self.postgres.url)
        try:
            return list(await connection.fetch(query, *arguments))
        finally:
            await connection.close()

    @asynccontextmanager
    async def caller(self, front: Part | None = None) -> AsyncIterator["Caller"]:
        async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=30)) as session:
            yield await Caller.of(self, session, front or self.fronts[0])

    async def close(self) -> None:
        for part in (*self.fronts, *self.workers):
            await part.signal(signal.SIGCONT)
            await part.kill()
        for server in (self.redis, self.postgres):
            if server.pid is not None:
                os.kill(server.pid, signal.SIGCONT)
            await self.in_servers(server.stop)
        self.servers.shutdown()


@dataclass
class Caller:
    """A client with a token and a connector, that speaks to one front end."""

    arena: Arena
    session: aiohttp.ClientSession
    base_url: str
    headers: dict[str, str]
    connector_id: str = ""

    @classmethod
    async def of(cls, arena: Arena, session: aiohttp.ClientSession, front: Part) -> "Caller":
        caller = cls(arena, session, arena.url_of(front), {})
        secret = {"client_id": arena.client_id, "client_secret": SECRET}
        _, token, _ = await caller.call("POST", "/api/v1/account/applications/token", json=secret)
        caller.headers = {"Authorization": f"Bearer {token['access_token']}"}
        return caller

    async def connect(self) -> str:
        """A new connector on the upstream."""
        body = {
            "workspace_name": "w", "connector_type": "support-desk", "name": "n", "credentials": CREDENTIALS,
            "validate": False,
        }  # fmt: skip
        status, connector, _ = await self.call("POST", _CONNECTORS, json=body)
        assert status == 201, connector
        self.connector_id = connector["id"]
        return self.connector_id

    async def call(self, method: str, path: str, headers: Any = None, **options: Any) -> tuple[int, Any, Any]:
        async with self.session.request(
            method, self.base_url + path, headers={**self.headers, **(headers or {})}, **options
        ) as response:
            is_json = "json" in response.content_type
            return response.status, await (response.json() if is_json else response.read()), response.headers

    async def execute(self, entity: str, action: str, params: Any, **headers: str) -> tuple[int, Any, Any]:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        body = {"entity": entity, "action": action, "params": params}
        return await self.call("POST", f"{_CONNECTORS}/{self.connector_id}/execute", json=body, headers=named)

    async def submit(self, entity: str, action: str, params: Any, **headers: str) -> dict[str, Any]:
        """An accepted job."""
        status, answer, _ = await self.execute(entity, action, params, Prefer="respond-async", **headers)
        assert status == 202, (status, answer)
        return dict(answer["job"])

    async def create(self, external_id: str, **headers: str) -> dict[str, Any]:
        """An accepted job that creates a ticket."""
        return await self.submit("tickets", "create", ticket(external_id), **headers)

    async def job(self, job_id: str, wait: int = 0) -> dict[str, Any]:
        status, job, _ = await self.call("GET", f"/api/v1/jobs/{job_id}?wait={wait}")
        assert status == 200, (status, job)
        return dict(job)

    async def ended(self, job_id: str) -> dict[str, Any]:
        """The job, once it has ended."""
        async with asyncio.timeout(PATIENCE):
            while not (job := await self.job(job_id, wait=5))["done"]:
                pass
        return job

    async def running(self, job_id: str) -> dict[str, Any]:
        """The job, once a worker runs it."""
        async with asyncio.timeout(PATIENCE):
            while (job := await self.job(job_id, wait=5))["status"] != "running":
                pass
        return job


def ticket(external_id: str) -> dict[str, Any]:
    return {"ticket": {"subject": "s", "comment": {"body": "b"}, "external_id": external_id}}


async def _answers(session: aiohttp.ClientSession, url: str) -> bool:
    try:
        async with session.get(url) as response:
            return response.status == 200
    except aiohttp.ClientError:
        return False


async def until(condition: Any, patience: float = PATIENCE) -> float:
    """Seconds until the (awaited) condition holds."""
    started = time.monotonic()
    async with asyncio.timeout(patience):
        while not await condition():  # noqa: ASYNC110  what is waited for happens in other processes
            await asyncio.sleep(0.05)
    return time.monotonic() - started


@asynccontextmanager
async def arena(*, fronts: int = 1, workers: int = 1, **settings: str) -> AsyncIterator[Arena]:
    """A running gateway with one client."""
    directory = Path(tempfile.mkdtemp(prefix="gwf-"))
    servers = ThreadPoolExecutor(1)
    postgres, redis = EmbeddedPostgres(directory / "p", durable=False), EmbeddedRedis(directory / "r")
    async with Upstream().serving() as upstream:
        opened = Arena(postgres, redis, upstream, servers, {})
        try:
            database_url = await opened.in_servers(postgres.start)
            redis_url = await opened.in_servers(redis.start)
            opened.environment = {
                "GATEWAY_DATABASE_URL": database_url,
                "GATEWAY_REDIS_URL": redis_url,
                "GATEWAY_ENCRYPTION_KEYS": new_key(),
                "GATEWAY_DATA_DIR": str(directory / "data"),
                "GATEWAY_UPSTREAM_SUPPORT_DESK": upstream.url,
                "GATEWAY_LOG_LEVEL": "error",
                "GATEWAY_SYNCHRONIZE": "false",
                **settings,
            }
            await migrate(database_url)
            async with Database.open(database_url, size=1) as database:
                identity = IdentityStore(database)
                organization = await identity.create_organization("faults")
                client_id = await identity.create_client(
                    "faults", [organization.id], hashed(SECRET), ["read", "write", "admin"]
                )
            opened.client_id, opened.organization_id = str(client_id), str(organization.id)
            for _ in range(workers):
                await opened.add_worker()
            for _ in range(fronts):
                await opened.add_front()
            await opened.workers_ready()
            yield opened
        finally:
            await opened.close()
            shutil.rmtree(directory, ignore_errors=True)
