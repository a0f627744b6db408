"""A gateway of real processes on stores of its own, all of which may be killed, frozen and started again."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any

import aiohttp

from gateway.embedded.server import LocalServer
from tests.faults.upstream import Upstream
from tests.harness.caller import CREDENTIALS
from tests.harness.clients import NewClient
from tests.harness.deployment import Deployment
from tests.harness.processes import Program
from tests.harness.stores import Stores, own_stores
from tests.harness.waiting import PATIENCE, eventually

Part = Program
_CONNECTORS = "/api/v1/integrations/connectors"


class Arena(Deployment):
    """Stores, front ends each on a port of its own, workers and the application."""

    def __init__(self, stores: Stores, upstream: Upstream, settings: dict[str, str]) -> None:
        super().__init__(stores.directory, stores.postgres.url, stores.redis.url, upstream.url, settings)
        self.stores = stores
        self.upstream = upstream
        self.caller_client: NewClient | None = None

    @property
    def postgres(self) -> LocalServer:
        return self.stores.postgres

    @property
    def redis(self) -> LocalServer:
        return self.stores.redis

    @property
    def fronts(self) -> list[Program]:
        return self.front_ends

    @property
    def organization_id(self) -> str:
        assert self.caller_client is not None
        return str(self.caller_client.organization_id)

    async def in_servers(self, call: Any) -> Any:
        return await self.stores.in_servers(call)

    async def restart(self, server: LocalServer, *, down: float = 0.0) -> None:
        await self.stores.restart(server, down=down)

    async def flush_redis(self) -> None:
        await self.stores.flush_redis()

    async def add_front(self, **environment: str) -> Program:
        return await self.front_end_apart(**environment)

    async def add_worker(self, **environment: str) -> Program:
        return await self.worker(**environment)

    async def swept(self) -> None:
        """Returns at the second heartbeat of every worker from now on: all have tried by then whatever they would."""
        for _ in range(2):
            since = await self.value("SELECT now()")
            await eventually(partial(self._are_seen, since))

    async def _are_seen(self, since: datetime) -> bool:
        seen = await self.value("SELECT count(*) FROM workers WHERE seen_at > $1", since)
        return bool(seen >= sum(worker.is_running for worker in self.workers))

    def url_of(self, front: Program) -> str:
        return f"http://{front.command[-1]}"

    async def value(self, query: str, *arguments: Any) -> Any:
        return await self.stores.value(query, *arguments)

    async def rows(self, query: str, *arguments: Any) -> list[Any]:
        return await self.stores.rows(query, *arguments)

    @asynccontextmanager
    async def caller(self, front: Program | None = None) -> AsyncIterator["Caller"]:
        async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=30)) as session:
            yield await Caller.of(self, session, front or self.fronts[0])


@dataclass
class Caller:
    """A client with a token and a connector, that speaks to one front end."""

    arena: Arena
    session: aiohttp.ClientSession
    base_url: str
    headers: dict[str, str]
    connector_id: str = ""

    @classmethod
    async def of(cls, arena: Arena, session: aiohttp.ClientSession, front: Program) -> "Caller":
        caller = cls(arena, session, arena.url_of(front), {})
        assert arena.caller_client is not None
        secret = {"client_id": arena.caller_client.id, "client_secret": arena.caller_client.secret}
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


async def until(condition: Any, patience: float = PATIENCE) -> float:
    """Seconds until the (awaited) condition holds."""
    started = time.monotonic()
    await eventually(condition, within=patience)
    return time.monotonic() - started


@asynccontextmanager
async def arena(*, fronts: int = 1, workers: int = 1, **settings: str) -> AsyncIterator[Arena]:
    """A running gateway with one client."""
    unasked = {"GATEWAY_SYNCHRONIZE": "false"}
    async with own_stores() as stores, Upstream().serving() as upstream:
        opened = Arena(stores, upstream, {**unasked, **settings})
        try:
            opened.caller_client = await opened.client()
            for _ in range(workers):
                await opened.add_worker()
            for _ in range(fronts):
                await opened.add_front()
            yield opened
        finally:
            await opened.close()
