"""Whether PostgreSQL responds, and why it cannot serve: the errors that are not bugs, with a short reason each."""

import asyncio
from dataclasses import dataclass

import asyncpg

from gateway.foundation.aio.clock import steady
from gateway.foundation.aio.single_flight import SingleFlight
from gateway.foundation.db.servers import DatabaseServers

#: timeout of a response in seconds
_TIMEOUT = 0.4
#: number of tries, because this process may be the slow one
_TRIES = 2

_BACKENDS = """
    SELECT pid, COALESCE(backend_type = 'client backend' AND state = 'active'
                         AND query_start < clock_timestamp() - interval '1 second', false) AS is_slow
    FROM pg_stat_activity
"""
_IS_READ_ONLY = "SELECT pg_is_in_recovery() OR current_setting('transaction_read_only')::boolean"
# A sort that exceeds work_mem uses disk space, and frees it.
_SET_SMALL_WORK_MEM = "SET LOCAL work_mem = '64kB'"
_SORT_ON_DISK = (
    "SELECT count(*) FROM (SELECT md5(n::text) AS t FROM generate_series(1, 20000) AS n ORDER BY t) AS sorted"
)

#: the connection was lost or could not be made: a statement that was sent may have been executed
CONNECTION_ERRORS = (
    OSError,
    TimeoutError,
    asyncpg.PostgresConnectionError,
    asyncpg.InternalClientError,
    asyncpg.OperatorInterventionError,
)
#: statements blocked each other, or a slow one was canceled: a retry may succeed at once
PASSING = (asyncpg.TransactionRollbackError, asyncpg.LockNotAvailableError, asyncpg.QueryCanceledError)
#: PostgreSQL refused the statement, for lack of space, memory or connections, or because it is a standby
REFUSED = (
    asyncpg.InsufficientResourcesError,
    asyncpg.ReadOnlySQLTransactionError,
    asyncpg.PostgresSystemError,
    *PASSING,
)
CANNOT_SERVE = (*CONNECTION_ERRORS, *REFUSED)
#: what opening, binding and releasing a connection raises; statements raise InterfaceError for wrong calls of ours, too
UNUSABLE = (*CANNOT_SERVE, asyncpg.InterfaceError)

_REASONS: tuple[tuple[type[BaseException], str], ...] = (
    (asyncpg.DiskFullError, "its disk is full"),
    (asyncpg.OutOfMemoryError, "it is out of memory"),
    (asyncpg.TooManyConnectionsError, "it has too many connections"),
    (asyncpg.InsufficientResourcesError, "it lacks resources"),
    (asyncpg.ReadOnlySQLTransactionError, "it is read-only"),
    (asyncpg.PostgresSystemError, "its disk fails"),
    (asyncpg.TransactionRollbackError, "statements blocked each other"),
    (asyncpg.LockNotAvailableError, "statements blocked each other"),
    (asyncpg.QueryCanceledError, "a statement took too long"),
    (TimeoutError, "it does not answer in time"),
    (BaseException, "it is unavailable"),
)


def reason_of(error: BaseException) -> str:
    """Why PostgreSQL cannot serve, without internal details."""
    return next(words for cls, words in _REASONS if isinstance(error, cls))


async def is_read_only(connection: "asyncpg.Connection[asyncpg.Record]") -> bool:
    """Whether the server accepts no writes, because it is a standby or is configured so."""
    return bool(await connection.fetchval(_IS_READ_ONLY))


async def require_disk_space(connection: "asyncpg.Connection[asyncpg.Record]") -> None:
    """Raise asyncpg.DiskFullError if the server's disk is full."""
    async with connection.transaction():
        await connection.execute(_SET_SMALL_WORK_MEM)
        await connection.fetchval(_SORT_ON_DISK)


@dataclass(frozen=True, slots=True)
class Backends:
    """Process ids of a server's backends."""

    #: those with a long-running statement
    slow: frozenset[int] = frozenset()
    #: all of them; None if the server did not say
    all: frozenset[int] | None = None
    #: when the server was asked, by the steady clock
    asked_at: float = 0.0

    def lack(self, backend: int, since: float) -> bool:
        """Whether a backend that has been used `since` then is another server's; false if that is not known.

        One that was connected after the server was asked may be its own.
        """
        return self.all is not None and backend not in self.all and since < self.asked_at


class Presence:
    """Tells an unavailable PostgreSQL from a slow one: a separate connection queries long-running statements."""

    def __init__(self, url: str) -> None:
        self._servers = DatabaseServers(url)
        self._querying: SingleFlight[None, Backends | None] = SingleFlight(lambda _: self._query())

    async def backends(self) -> Backends | None:
        """The backends of the server that responds; None if PostgreSQL is unavailable.

        Concurrent callers share the result.
        """
        return await self._querying(None)

    async def _query(self) -> Backends | None:
        for _ in range(_TRIES):
            try:
                async with asyncio.timeout(_TIMEOUT):
                    return await self._fetch()
            except asyncpg.PostgresConnectionError:
                continue
            except (asyncpg.PostgresError, asyncpg.InterfaceError):
                return Backends()  # it responds, even if it refuses
            except (OSError, TimeoutError):
                continue
        return None

    async def _fetch(self) -> Backends:
        connection = await self._servers.connect(statement_cache_size=0)
        try:
            asked_at, found = steady(), await connection.fetch(_BACKENDS)
            slow = frozenset(pid for pid, is_slow in found if is_slow)
            return Backends(slow, frozenset(pid for pid, _ in found), asked_at)
        finally:
            connection.terminate()
