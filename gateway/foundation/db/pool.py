"""The pool of connections to PostgreSQL: a connection in use is bound to one organization, and each has its share.

Row-level security is the second safeguard of every query: a connection without a tenant sees no rows, and one without a
person sees no copies of personal connectors.
"""

import asyncio
import contextlib
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import datetime
from typing import Any, Protocol, TypeAlias, TypeVar
from uuid import UUID

import asyncpg

from gateway.errors import Unavailable
from gateway.foundation.aio.clock import CLOCK, steady
from gateway.foundation.db.pooler import SERVER_LIMITS, TransactionConnection
from gateway.foundation.db.presence import (
    CANNOT_SERVE,
    PASSING,
    REFUSED,
    UNUSABLE,
    Backends,
    Presence,
    is_read_only,
    reason_of,
    require_disk_space,
)
from gateway.foundation.db.servers import DatabaseServers
from gateway.foundation.telemetry.metrics import REFUSED as REFUSED_REQUESTS

Connection: TypeAlias = "asyncpg.Connection[asyncpg.Record]"
T = TypeVar("T")

#: the tenant that sees all rows: maintenance, claims of jobs, identity
SYSTEM = "*"
#: the person of the gateway's own work on copies, which sees those of everybody's connectors, and that of nobody
_EVERYONE, _NOBODY = "*", ""
#: seconds that a caller waits for a connection, unless PostgreSQL is slow
_ACQUIRE_TIMEOUT = 1.5
#: seconds of a use after which the pool checks whether PostgreSQL responds
_SLOW_AFTER = 1.2
_RETRY_AFTER = 2
#: one of so many connections is reserved for claims, leases and sign-ins
_RESERVE = 4
#: seconds after its last use of a connection during which an organization counts as active
ACTIVE = 60.0

#: seconds until PostgreSQL must confirm that a statement was canceled; then the connection is closed
_CANCEL_TIMEOUT = 1.0
_SET_ROLE = f"{SERVER_LIMITS.format(scope='SESSION')} SET ROLE gateway_app"
# One round trip binds the session if its last use was another's; the pool does not reset it.
_BIND_SESSION = "SELECT set_config('gateway.tenant', $1, false), set_config('gateway.person', $2, false)"
_UNIX_TIME = "SELECT extract(epoch FROM clock_timestamp())::float8"
#: seconds for which `trouble` reports a refusal
_TROUBLE = 3.0
#: timeout of `trouble` in seconds
_READY_TIMEOUT = 2.0


class SessionConnection(asyncpg.Connection):  # type: ignore[misc]
    """A connection that the pool does not reset on release, because the next user binds its own tenant and person."""

    #: the tenant and the person whose rows it sees; None if unknown
    bound: tuple[str, str] | None = None

    async def close(self, *, timeout: float | None = None) -> None:
        """Close it; a server that is silent is not waited for."""
        with contextlib.suppress(*UNUSABLE):
            await super().close(timeout=_CANCEL_TIMEOUT if timeout is None else timeout)

    def get_reset_query(self) -> str:
        return ""

    async def bind(self, tenant: str, person: str) -> None:
        """Bind the connection to the rows of the tenant and, of its copies, to the shared ones and the person's."""
        if self.bound != (tenant, person):
            self.bound = None
            await self.execute(_BIND_SESSION, tenant, person)
            self.bound = tenant, person


class ConnectionShares:
    """The number of connections of a pool that each holder may use concurrently.

    An organization may use half of the connections that others do not use, but at least one. If no other organization
    is active, it may use all of them. Waiting holders take turns.
    """

    def __init__(self, size: int, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        #: the two latest holders with the time of their last use: enough to know whether another one is active
        self._latest: dict[str, float] = {}
        #: connections that organizations may use together
        self.total = size - size // _RESERVE
        self._used: Counter[str] = Counter()
        self._in_use = 0
        #: holder → its waiting callers; the first holder is next
        self._waiting: dict[str, dict[asyncio.Future[None], None]] = {}

    def used(self, holder: str) -> int:
        """The number of connections that the holder uses."""
        return self._used[holder]

    async def acquire(self, holder: str) -> None:
        """Wait until the holder may use one more connection, until `release`."""
        self._note(holder)
        if holder not in self._waiting and self._may_use_more(holder):
            self._take(holder)
            return
        turn = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(holder, {})[turn] = None
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self.release(holder)
            else:
                self._withdraw(holder, turn)
            raise

    def release(self, holder: str) -> None:
        """End the use of one connection; the next waiting holder may use it."""
        self._in_use -= 1
        self._used[holder] -= 1
        if not self._used[holder]:
            del self._used[holder]
        while self._waiting and self._in_use < self.total and (following := self._next()) is not None:
            self._grant(following)

    def _may_use_more(self, holder: str) -> bool:
        since = self._now() - ACTIVE
        is_alone = not any(other != holder and at > since for other, at in self._latest.items())
        left_by_others = self.total - (self._in_use - self._used[holder])
        return self._in_use < self.total and (is_alone or self._used[holder] < max(1, left_by_others // 2))

    def _note(self, holder: str) -> None:
        self._latest.pop(holder, None)
        self._latest[holder] = self._now()
        if len(self._latest) > 2:
            del self._latest[next(iter(self._latest))]

    def _withdraw(self, holder: str, turn: asyncio.Future[None]) -> None:
        waiters = self._waiting.get(holder, {})
        waiters.pop(turn, None)
        if not waiters:
            self._waiting.pop(holder, None)

    def _take(self, holder: str) -> None:
        self._in_use += 1
        self._used[holder] += 1

    def _next(self) -> str | None:
        """The first waiting holder that may use one more connection."""
        return next((holder for holder in self._waiting if self._may_use_more(holder)), None)

    def _grant(self, holder: str) -> None:
        waiters = self._waiting.pop(holder)
        turn = next(iter(waiters))
        del waiters[turn]
        if waiters:
            self._waiting[holder] = waiters
        if not turn.done():
            self._take(holder)
            turn.set_result(None)


class Reader(Protocol):
    """Another server that may answer reads."""

    @property
    def lag(self) -> float | None: ...

    async def read(
        self,
        organization_id: UUID,
        work: Callable[[Connection], Awaitable[T]],
        *,
        person: UUID | None = None,
        is_current: bool,
    ) -> tuple[T, datetime] | None: ...


class Database:
    """The pool of a process. Every use is bound to a tenant."""

    def __init__(
        self, pool: "asyncpg.Pool[asyncpg.Record]", url: str, *, timeout: float = 15.0, has_pooler: bool = False
    ) -> None:
        self._pool = pool
        self.url = url
        #: seconds for which a use waits for a slow disk
        self.timeout = timeout
        #: whether the process ids of connections are a pooler's, and not those of PostgreSQL
        self.has_pooler = has_pooler
        self.backends_there = Presence(url).backends
        self.shares = ConnectionShares(pool.get_max_size())
        #: releases of connections whose statement is being canceled
        self._releasing: set[asyncio.Task[None]] = set()
        #: process ids of the connections in use
        self.backends: set[int] = set()
        #: why PostgreSQL could not write, and until when `trouble` reports it
        self._trouble: str | None = None
        self._trouble_until = 0.0
        #: the replica, if there is one
        self.replica: Reader | None = None

    @classmethod
    @asynccontextmanager
    async def open(
        cls,
        url: str,
        *,
        size: int = 10,
        command_timeout: float = 15.0,
        is_patient: bool = False,
        has_pooler: bool = False,
    ) -> AsyncIterator["Database"]:
        """A pool whose commands end after `command_timeout` seconds, and at once if PostgreSQL is unavailable.

        A patient pool opens even if PostgreSQL is unavailable, and connects when it is back; any other raises
        Unavailable. With `has_pooler`, the URL may be that of a pooler in transaction mode.
        """
        servers = DatabaseServers(url)
        try:
            pool = await asyncpg.create_pool(
                connect=lambda _, **options: servers.connect(**options),
                min_size=0 if is_patient else 1,
                max_size=size,
                command_timeout=command_timeout,
                timeout=_ACQUIRE_TIMEOUT,
                # A pooler may use another server session, without the statements and settings of earlier transactions.
                init=_read_first_clock if has_pooler else _initialize,
                connection_class=TransactionConnection if has_pooler else SessionConnection,
                statement_cache_size=0 if has_pooler else 100,
                max_inactive_connection_lifetime=60,
            )
        except UNUSABLE as error:
            raise Unavailable("PostgreSQL cannot be reached", retry_after=_RETRY_AFTER) from error
        try:
            yield cls(pool, url, timeout=command_timeout, has_pooler=has_pooler)
        finally:
            await _close(pool)

    @property
    def use(self) -> dict[str, int]:
        """The number of idle connections and of those in use."""
        idle = self._pool.get_idle_size()
        return {"idle": idle, "used": self._pool.get_size() - idle}

    async def read_clock(self) -> None:
        """Set the process's clock by PostgreSQL's, as the first connection does; raises Unavailable."""
        async with self.system() as connection:
            await _read_clock(connection)

    async def trouble(self) -> str | None:
        """Why PostgreSQL is unavailable or cannot write, in a few words; None if it works."""
        try:
            async with asyncio.timeout(_READY_TIMEOUT), self.system() as connection:
                if await is_read_only(connection):
                    return reason_of(asyncpg.ReadOnlySQLTransactionError())
                if self._trouble is not None:
                    if time.monotonic() < self._trouble_until:
                        return self._trouble
                    await require_disk_space(connection)
                    self._trouble = None
        except Unavailable as unavailable:
            return self._trouble or unavailable.detail
        except TimeoutError:
            return "it does not answer in time"
        return None

    def tenant(
        self, organization_id: UUID | str, person: UUID | None = None
    ) -> AbstractAsyncContextManager[Connection]:
        """A connection that sees one organization's rows; raises Unavailable if PostgreSQL cannot serve it.

        Of the copies it sees those of shared connectors and of the person's own; a client that is no person has none.
        """
        return self._used(str(organization_id), _NOBODY if person is None else str(person))

    def all_copies(self, organization_id: UUID) -> AbstractAsyncContextManager[Connection]:
        """The same for the gateway's own work on copies, which shows a caller counts at most: it sees everybody's."""
        return self._used(str(organization_id), _EVERYONE)

    def system(self) -> AbstractAsyncContextManager[Connection]:
        """A connection that sees the rows of all organizations, for work that belongs to none of them."""
        return self._used(SYSTEM, _EVERYONE)

    @asynccontextmanager
    async def _used(self, tenant: str, person: str) -> AsyncIterator[Connection]:
        """A connection that is bound to the tenant and the person; raises Unavailable."""
        use, was_sent = _Use(self, tenant, person), False
        try:
            connection = await self._bound(use)
            was_sent = True
            try:
                yield connection
            except (TimeoutError, asyncio.CancelledError):
                self._release_later(connection, use)
                raise
            except BaseException as error:
                is_closed = _is_closed(connection)
                # asyncpg raises AttributeError if the connection is lost between prepare and execute.
                is_lost = is_closed and isinstance(error, (asyncpg.InterfaceError, AttributeError))
                if not is_closed and isinstance(error, UNUSABLE) and not isinstance(error, PASSING):
                    connection.terminate()
                if isinstance(error, asyncpg.ReadOnlySQLTransactionError):
                    await self.leave_server()
                await self._release(connection)
                if is_lost:
                    raise self._unavailable(error, was_sent=was_sent) from error
                raise
            else:
                await self._pool.release(connection)
        except CANNOT_SERVE as error:
            raise self._unavailable(error, was_sent=was_sent) from error
        finally:
            use.end()

    async def leave_server(self) -> None:
        """Use no connection again that was made until now: its server is silent, or no longer the primary."""
        await self._pool.expire_connections()

    async def read(
        self,
        organization_id: UUID,
        work: Callable[[Connection], Awaitable[T]],
        *,
        person: UUID | None = None,
        is_current: bool = True,
    ) -> tuple[T, datetime | None]:
        """What `work` reads, and, if a replica was read, the time of which it is.

        A current read has all that was committed before it. `work` may run twice, and only reads.
        """
        if self.replica is not None:
            found = await self.replica.read(organization_id, work, person=person, is_current=is_current)
            if found is not None:
                return found
        async with self.tenant(organization_id, person) as connection:
            return await work(connection), None

    def _release_later(self, connection: Connection, use: "_Use") -> None:
        """Release it in the background, after PostgreSQL has confirmed that the statement is canceled.

        Until then it counts as used, so that no more statements run than the pool has connections.
        """
        task = asyncio.create_task(self._release(connection), name="cancel a statement")
        self._releasing.add(task)
        task.add_done_callback(self._releasing.discard)
        if use.has_share:
            use.has_share = False
            task.add_done_callback(lambda _: self.shares.release(use.tenant))

    async def _release(self, connection: Connection) -> None:
        """Release it after an error; a running statement is canceled first."""
        with contextlib.suppress(*UNUSABLE):  # the connection is then closed
            await self._pool.release(connection, timeout=_CANCEL_TIMEOUT)

    def _unavailable(self, error: BaseException, *, was_sent: bool) -> Unavailable:
        is_refused = isinstance(error, REFUSED)
        if is_refused and not isinstance(error, PASSING):
            self._trouble, self._trouble_until = reason_of(error), time.monotonic() + _TROUBLE
        unavailable = Unavailable(f"PostgreSQL cannot serve this now: {reason_of(error)}", retry_after=_RETRY_AFTER)
        unavailable.was_sent = was_sent and not is_refused
        return unavailable

    async def _bound(self, use: "_Use") -> Connection:
        """A connection that is bound to the tenant and the person of the use, within the tenant's share of the pool."""
        has_turn = use.tenant == SYSTEM
        try:
            async with asyncio.timeout(_ACQUIRE_TIMEOUT) as use.limit:
                if not has_turn:
                    await self.shares.acquire(use.tenant)
                    use.has_share = has_turn = True
                connection = await self._pool.acquire()
                use.hold(connection)
                try:
                    await connection.bind(use.tenant, use.person)
                except BaseException:
                    self._release_later(connection, use)
                    raise
                use.limit = None
        except TimeoutError:
            if not has_turn and not use.is_unavailable:
                raise self._share_used(use.tenant) from None
            raise
        except asyncpg.InterfaceError as error:
            raise self._unavailable(error, was_sent=False) from error
        return connection

    def _share_used(self, tenant: str) -> Unavailable:
        REFUSED_REQUESTS.add("database_share")
        return Unavailable(
            f"the organization uses {self.shares.used(tenant)} of {self.shares.total} connections to PostgreSQL and "
            "waits for another; try again in a moment",
            retry_after=_RETRY_AFTER,
        )


class _Use:
    """One use of the pool: it ends at once if PostgreSQL is unavailable, and continues if PostgreSQL is slow."""

    def __init__(self, database: Database, tenant: str, person: str) -> None:
        self._database = database
        self.tenant = tenant
        self.person = person
        #: whether the use counts in the tenant's share, until `end`
        self.has_share = False
        self.connection: Connection | None = None
        self._backend: int | None = None
        #: since when it is held, by the steady clock
        self._held_at = 0.0
        #: the timeout of the wait for a connection
        self.limit: asyncio.Timeout | None = None
        #: whether it ended because PostgreSQL is unavailable
        self.is_unavailable = False
        self._checking: asyncio.Task[None] | None = None
        loop = asyncio.get_running_loop()
        self._deadline = loop.time() + database.timeout
        self._timer = loop.call_later(_SLOW_AFTER, self._begin_check)

    def hold(self, connection: Connection) -> None:
        self.connection, self._backend, self._held_at = connection, connection.get_server_pid(), steady()
        self._database.backends.add(self._backend)

    def end(self) -> None:
        self._timer.cancel()
        if self.has_share:
            self._database.shares.release(self.tenant)
        if self._backend is not None:
            self._database.backends.discard(self._backend)
        if self._checking is not None:
            self._checking.cancel()

    def _begin_check(self) -> None:
        self._checking = asyncio.create_task(self._check(), name="check that PostgreSQL responds")

    async def _check(self) -> None:
        while (found := await self._database.backends_there()) is not None:
            if self._is_elsewhere(found):
                await self._database.leave_server()
                break
            if self.limit is not None and found.slow & self._database.backends:
                self.limit.reschedule(self._deadline)
            await asyncio.sleep(_SLOW_AFTER)
        self.is_unavailable = True
        if self.limit is not None:
            self.limit.reschedule(0)
        elif self.connection is not None:
            self.connection.terminate()

    def _is_elsewhere(self, found: Backends) -> bool:
        """Whether the connection leads to another server than the one that responds, for instance to a lost primary."""
        if self._backend is None or self._database.has_pooler:
            return False
        return found.lack(self._backend, self._held_at)


def _is_closed(connection: Connection) -> bool:
    """Whether the connection is closed; asyncpg takes a closed one from its user, who then cannot ask it."""
    try:
        return bool(connection.is_closed())
    except asyncpg.InterfaceError:
        return True


async def _initialize(connection: Any) -> None:
    await connection.execute(_SET_ROLE)
    await _read_first_clock(connection)


async def _read_first_clock(connection: Any) -> None:
    """Read the clock before any time is compared with PostgreSQL's; a loop of the process reads it again later."""
    if not CLOCK.is_set:
        await _read_clock(connection)


async def _read_clock(connection: Any) -> None:
    requested_at = steady()
    CLOCK.set_by(await connection.fetchval(_UNIX_TIME), requested_at)


async def _close(pool: "asyncpg.Pool[asyncpg.Record]") -> None:
    try:
        await asyncio.wait_for(pool.close(), 3)
    except TimeoutError:
        pool.terminate()
