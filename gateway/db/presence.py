"""Whether PostgreSQL responds, and why it cannot serve: the errors that are not bugs, in a few words each."""

import asyncio

import asyncpg

from gateway.aio.single_flight import SingleFlight

#: seconds for a response, and number of tries: this process, too, may be the slow one
_TIMEOUT, _TRIES = 0.4, 2

_SLOW = """
    SELECT pid FROM pg_stat_activity
    WHERE backend_type = 'client backend' AND state = 'active' AND query_start < clock_timestamp() - interval '1 second'
"""
_IS_READ_ONLY = "SELECT pg_is_in_recovery() OR current_setting('transaction_read_only')::boolean"
# Sorting more than fits into memory takes space on the disk, and gives it back.
_SPILL_EARLY = "SET LOCAL work_mem = '64kB'"
_TAKES_SPACE = (
    "SELECT count(*) FROM (SELECT md5(n::text) AS t FROM generate_series(1, 20000) AS n ORDER BY t) AS sorted"
)

#: the connection broke, or there never was one: what was sent may have been done
AWAY = (
    OSError,
    TimeoutError,
    asyncpg.PostgresConnectionError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
    asyncpg.OperatorInterventionError,
)
#: statements blocked each other, or one took too long and was canceled: the next try may succeed at once
PASSING = (asyncpg.TransactionRollbackError, asyncpg.LockNotAvailableError, asyncpg.QueryCanceledError)
#: it said itself that it did not do it, for want of space, memory or connections, or because it is a standby now
REFUSED = (
    asyncpg.InsufficientResourcesError,
    asyncpg.ReadOnlySQLTransactionError,
    asyncpg.PostgresSystemError,
    *PASSING,
)
CANNOT_SERVE = (*AWAY, *REFUSED)

_REASONS: tuple[tuple[type[BaseException], str], ...] = (
    (asyncpg.DiskFullError, "its disk is full"),
    (asyncpg.OutOfMemoryError, "it is out of memory"),
    (asyncpg.TooManyConnectionsError, "it has too many connections"),
    (asyncpg.InsufficientResourcesError, "it lacks resources"),
    (asyncpg.ReadOnlySQLTransactionError, "it is read-only"),
    (asyncpg.PostgresSystemError, "its disk fails"),
    (asyncpg.TransactionRollbackError, "statements stood in each other's way"),
    (asyncpg.LockNotAvailableError, "statements stood in each other's way"),
    (asyncpg.QueryCanceledError, "a statement took too long"),
    (TimeoutError, "it does not answer in time"),
    (BaseException, "it is unavailable"),
)


def reason_of(error: BaseException) -> str:
    """Why PostgreSQL cannot serve, without internal details."""
    return next(words for cls, words in _REASONS if isinstance(error, cls))


async def is_read_only(connection: "asyncpg.Connection[asyncpg.Record]") -> bool:
    """Whether the server takes no writes: it is a standby, or was set so."""
    return bool(await connection.fetchval(_IS_READ_ONLY))


async def require_disk_space(connection: "asyncpg.Connection[asyncpg.Record]") -> None:
    """Raise asyncpg.DiskFullError where the server's disk is full."""
    async with connection.transaction():
        await connection.execute(_SPILL_EARLY)
        await connection.fetchval(_TAKES_SPACE)


class Presence:
    """Tells absence from slowness: a connection of its own asks which statements run for long."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._querying: SingleFlight[None, frozenset[int] | None] = SingleFlight(lambda _: self._query())

    async def slow_backends(self) -> frozenset[int] | None:
        """The process ids of connections whose statement runs for long; None if PostgreSQL is unavailable.

        Concurrent callers share the answer.
        """
        return await self._querying(None)

    async def _query(self) -> frozenset[int] | None:
        for _ in range(_TRIES):
            try:
                async with asyncio.timeout(_TIMEOUT):
                    return await self._fetched()
            except asyncpg.PostgresConnectionError:
                continue
            except (asyncpg.PostgresError, asyncpg.InterfaceError):
                return frozenset()  # it responds, even if it refuses
            except (OSError, TimeoutError):
                continue
        return None

    async def _fetched(self) -> frozenset[int]:
        connection = await asyncpg.connect(self._url, statement_cache_size=0)
        try:
            return frozenset(row["pid"] for row in await connection.fetch(_SLOW))
        finally:
            connection.terminate()
