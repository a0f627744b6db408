"""A gateway of processes on its own stores, all of which tests may kill, freeze and start again."""

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime
from functools import partial
from typing import Any

from gateway.access.identity.store import IdentityStore
from gateway.foundation.db.pool import Database
from tests.faults.upstream import Upstream
from tests.harness.caller import Api, ConnectorApi
from tests.harness.clients import NewClient, new_client, new_client_in
from tests.harness.deployment import Deployment
from tests.harness.processes import Program
from tests.harness.stores import Stores, own_stores
from tests.harness.waiting import eventually


class Arena(Deployment):
    """Stores, front ends on separate ports, workers, the application, and one client."""

    def __init__(self, stores: Stores, upstream: Upstream, api_client: NewClient, settings: dict[str, str]) -> None:
        super().__init__(stores.directory, stores.postgres.url, stores.redis.url, upstream.url, settings)
        self.stores = stores
        self.upstream = upstream
        self.api_client = api_client

    def url_of(self, front_end: Program) -> str:
        return f"http://{front_end.command[-1]}"

    @asynccontextmanager
    async def api(self, front_end: Program | None = None, client: NewClient | None = None) -> AsyncIterator[Api]:
        """A caller for the client, or for another one, at this front end or the first one."""
        url, client = self.url_of(front_end or self.front_ends[0]), client or self.api_client
        async with Api.of(url, client.id, client.secret) as api:
            yield api

    async def colleague(self) -> NewClient:
        """Another client of the same organization."""
        async with Database.open(self.stores.postgres.url, size=1) as database:
            return await new_client(IdentityStore(database), self.api_client.organization_id)

    @asynccontextmanager
    async def desk(self, front_end: Program | None = None) -> AsyncIterator[ConnectorApi]:
        """A new connector, created without a request to the application, which records requests."""
        async with self.api(front_end) as api:
            yield await api.connector(validate=False)

    async def swept(self) -> None:
        """Wait for two more heartbeats of every worker, after which each has run its maintenance."""
        for _ in range(2):
            since = await self.stores.value("SELECT now()")
            await eventually(partial(self._are_seen, since))

    async def _are_seen(self, since: datetime) -> bool:
        seen = await self.stores.value("SELECT count(*) FROM workers WHERE seen_at > $1", since)
        return bool(seen >= sum(worker.is_running for worker in self.workers))


def ticket(external_id: str) -> dict[str, Any]:
    return {"ticket": {"subject": "s", "comment": {"body": "b"}, "external_id": external_id}}


async def seconds_until(condition: Any) -> float:
    """Seconds until the (awaited) condition holds."""
    started = time.monotonic()
    await eventually(condition)
    return time.monotonic() - started


@asynccontextmanager
async def arena(
    *, front_ends: int = 1, workers: int = 1, upstream: Upstream | None = None, **settings: str
) -> AsyncIterator[Arena]:
    """A running gateway with one client; its application is `upstream`, or a support desk."""
    unasked = {"GATEWAY_SYNCHRONIZE": "false"}
    async with own_stores() as stores, (upstream or Upstream()).serving() as upstream:
        opened = Arena(stores, upstream, await new_client_in(stores.postgres.url), {**unasked, **settings})
        try:
            for _ in range(workers):
                await opened.worker()
            for _ in range(front_ends):
                await opened.front_end_apart()
            yield opened
        finally:
            await opened.close()
