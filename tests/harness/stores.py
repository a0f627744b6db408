"""A separate PostgreSQL and Redis, which tests may kill, freeze and start again."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import asyncpg
import psutil
from redis.asyncio import Redis

from gateway.embedded.postgres import EmbeddedPostgres
from gateway.embedded.redis import EmbeddedRedis
from gateway.embedded.server import LocalServer
from gateway.foundation.db.migrate import migrate
from tests.harness.clusters import with_cluster
from tests.harness.folders import short_path


@dataclass
class Stores:
    """The two servers, in their own directory."""

    directory: Path
    postgres: LocalServer
    redis: LocalServer
    _thread: ThreadPoolExecutor

    async def in_servers(self, call: Callable[[], Any]) -> Any:
        """Run work in the thread that starts all servers, because a server ends with the thread that started it."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, call)

    async def restart(self, server: LocalServer, *, down: float = 0.0) -> None:
        """kill -9, and start again after `down` seconds."""
        assert server.pid is not None
        os.kill(server.pid, signal.SIGKILL)
        await asyncio.sleep(down)
        await self.in_servers(server.stop)
        await self.in_servers(server.start)

    async def kill_with_children(self, server: LocalServer) -> None:
        """kill -9, and wait until its children have ended: a backend answers until it notices the postmaster's end."""
        assert server.pid is not None
        children = psutil.Process(server.pid).children(recursive=True)
        os.kill(server.pid, signal.SIGKILL)
        await asyncio.to_thread(psutil.wait_procs, children, timeout=10)

    async def flush_redis(self) -> None:
        async with Redis.from_url(self.redis.url) as redis:
            await redis.flushall()

    async def value(self, query: str, *arguments: Any) -> Any:
        """A single value from the database."""
        rows = await self.rows(query, *arguments)
        return rows[0][0] if rows else None

    async def rows(self, query: str, *arguments: Any) -> list[Any]:
        connection = await asyncpg.connect(self.postgres.url)
        try:
            return list(await connection.fetch(query, *arguments))
        finally:
            await connection.close()


def _fast_server(directory: Path) -> EmbeddedPostgres:
    return EmbeddedPostgres(directory, durable=False)


@asynccontextmanager
async def own_stores(
    server: Callable[[Path], EmbeddedPostgres] = _fast_server,
) -> AsyncIterator[Stores]:
    """A migrated database, on a server of this kind, and an empty Redis, within the block."""
    with short_path() as folder, ThreadPoolExecutor(1) as thread:
        postgres = with_cluster(server(folder / "p"))
        redis = EmbeddedRedis(folder / "r")
        stores = Stores(folder, postgres, redis, thread)
        try:
            await asyncio.gather(stores.in_servers(postgres.start), stores.in_servers(redis.start))
            await migrate(postgres.url)
            yield stores
        finally:
            for each in (redis, postgres):
                if each.pid is not None:
                    os.kill(each.pid, signal.SIGCONT)
                await stores.in_servers(each.stop)
