"""Connections to PostgreSQL, each bound to one organization while it is used.

Row-level security is the second net under every query: a connection that was not given a tenant sees nothing.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, TypeAlias
from uuid import UUID

import asyncpg

from gateway.errors import Unavailable

Connection: TypeAlias = "asyncpg.Connection[asyncpg.Record]"

#: the tenant that sees all rows: maintenance, claims of jobs, identity
SYSTEM = "*"
#: seconds until a caller who gets no connection, or a silent one, is told that PostgreSQL is away
_ACQUIRE_TIMEOUT = 1.5
_RETRY_AFTER = 2

_BECOME_APPLICATION = "SET ROLE gateway_app"
# One round trip binds the session; it is set anew each time a connection is taken, so nothing needs to be reset.
_BIND_TENANT = "SELECT set_config('gateway.tenant', $1, false)"

#: what asyncpg raises when the server went away, besides its own connection errors
_AWAY = (
    OSError,
    TimeoutError,
    asyncpg.PostgresConnectionError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
    asyncpg.TooManyConnectionsError,
    asyncpg.OperatorInterventionError,
)


class PooledConnection(asyncpg.Connection):  # type: ignore[misc]
    """A connection that is not reset on its way back: the next user binds its own tenant."""

    def get_reset_query(self) -> str:
        return ""


class Database:
    """The pool of a process. Every use names whose rows it is about."""

    def __init__(self, pool: "asyncpg.Pool[asyncpg.Record]", url: str) -> None:
        self._pool = pool
        self.url = url

    @classmethod
    @asynccontextmanager
    async def open(
        cls, url: str, *, size: int = 10, command_timeout: float = 1.8, is_patient: bool = False
    ) -> AsyncIterator["Database"]:
        """A pool whose commands are given up after `command_timeout` seconds; raises Unavailable.

        A patient one opens whether or not PostgreSQL is there, and uses it from when it is.
        """
        try:
            pool = await asyncpg.create_pool(
                url,
                min_size=0 if is_patient else 1,
                max_size=size,
                command_timeout=command_timeout,
                timeout=_ACQUIRE_TIMEOUT,
                init=_initialize,
                connection_class=PooledConnection,
                max_inactive_connection_lifetime=60,
            )
        except _AWAY as error:
            raise Unavailable("PostgreSQL cannot be reached", retry_after=_RETRY_AFTER) from error
        try:
            yield cls(pool, url)
        finally:
            await _close(pool)

    @property
    def use(self) -> dict[str, int]:
        """How many connections are idle and how many in use."""
        idle = self._pool.get_idle_size()
        return {"idle": idle, "used": self._pool.get_size() - idle}

    @asynccontextmanager
    async def tenant(self, organization_id: UUID | str) -> AsyncIterator[Connection]:
        """A connection that sees one organization's rows; raises Unavailable when PostgreSQL is away."""
        was_sent = False
        try:
            connection = await self._bound(str(organization_id))
            try:
                was_sent = True
                yield connection
            except (*_AWAY, asyncio.CancelledError):
                # An orderly return would first wait for the server to confirm that the statement is given up.
                connection.terminate()
                raise
            finally:
                await self._pool.release(connection)
        except _AWAY as error:
            away = Unavailable("PostgreSQL is away", retry_after=_RETRY_AFTER)
            away.was_sent = was_sent
            raise away from error

    async def _bound(self, tenant: str) -> Connection:
        async with asyncio.timeout(_ACQUIRE_TIMEOUT):
            connection = await self._pool.acquire()
            try:
                await connection.execute(_BIND_TENANT, tenant)
            except BaseException:
                connection.terminate()
                await self._pool.release(connection)
                raise
        return connection

    @asynccontextmanager
    async def system(self) -> AsyncIterator[Connection]:
        """A connection that sees all rows, for what is nobody's alone."""
        async with self.tenant(SYSTEM) as connection:
            yield connection


async def _initialize(connection: Any) -> None:
    await connection.execute(_BECOME_APPLICATION)


async def _close(pool: "asyncpg.Pool[asyncpg.Record]") -> None:
    try:
        await asyncio.wait_for(pool.close(), 3)
    except TimeoutError:
        pool.terminate()
