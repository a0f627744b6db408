"""Connections through a pooler in transaction mode: every transaction sets its role, its tenant and its
person.
"""

from typing import Any
from uuid import UUID

import asyncpg
from asyncpg.transaction import Transaction

#: seconds after which PostgreSQL ends a statement; longer than every timeout of the stores, so that it ends only
#: statements of processes that were cut off
_STATEMENT_TIMEOUT = 65
#: seconds after which PostgreSQL ends a transaction whose client is silent, because it may hold locks
_IDLE_TIMEOUT = 60
#: seconds between PostgreSQL's checks during a statement that its client is still connected
_DISCONNECT_CHECK = 2

SERVER_LIMITS = f"""
    SET {{scope}} statement_timeout = '{_STATEMENT_TIMEOUT}s';
    SET {{scope}} idle_in_transaction_session_timeout = '{_IDLE_TIMEOUT}s';
    SET {{scope}} client_connection_check_interval = '{_DISCONNECT_CHECK}s';
"""
_BIND_TRANSACTION = (
    f"{SERVER_LIMITS.format(scope='LOCAL')} SET LOCAL ROLE gateway_app; "
    "SELECT set_config('gateway.tenant', '{tenant}', true), set_config('gateway.person', '{person}', true)"
)


class TransactionConnection(asyncpg.Connection):  # type: ignore[misc]
    """A connection through a pooler in transaction mode: each transaction may run in another server session.

    So every statement runs in a transaction, and every transaction sets its role, its tenant and its person, which end
    with it.
    """

    #: the tenant and the person whose rows it sees
    tenant = ""
    person = ""

    def get_reset_query(self) -> str:
        return ""

    async def bind(self, tenant: str, person: str) -> None:
        """Bind the connection to the rows of the tenant and, of its copies, to the shared ones and the person's."""
        for each in (tenant, person or "*"):
            if each != "*":
                UUID(each)  # it becomes part of a statement
        self.tenant, self.person = tenant, person

    def transaction(self, **options: Any) -> Transaction:
        return _BoundTransaction(self, **{"isolation": None, "readonly": False, "deferrable": False, **options})

    async def execute(self, query: str, *args: Any, timeout: float | None = None) -> str:
        return str(await self._within(super().execute, query, *args, timeout=timeout))

    async def executemany(self, command: str, args: Any, *, timeout: float | None = None) -> None:
        await self._within(super().executemany, command, args, timeout=timeout)

    async def fetch(self, query: str, *args: Any, **options: Any) -> Any:
        return await self._within(super().fetch, query, *args, **options)

    async def fetchrow(self, query: str, *args: Any, **options: Any) -> Any:
        return await self._within(super().fetchrow, query, *args, **options)

    async def fetchval(self, query: str, *args: Any, **options: Any) -> Any:
        return await self._within(super().fetchval, query, *args, **options)

    async def _within(self, run: Any, *args: Any, **options: Any) -> Any:
        """Run a statement in the current transaction, or else in a new one."""
        # The first is set while a transaction begins, the second while one ends.
        if self._top_xact is not None or self.is_in_transaction():
            return await run(*args, **options)
        async with self.transaction():
            return await run(*args, **options)


class _BoundTransaction(Transaction):  # type: ignore[misc]
    """A transaction that sets the role, the tenant and the person of its connection."""

    async def start(self) -> None:
        is_outermost = self._connection._top_xact is None
        await super().start()
        if is_outermost:
            bound = {"tenant": self._connection.tenant, "person": self._connection.person}
            await self._connection.execute(_BIND_TRANSACTION.format(**bound))
