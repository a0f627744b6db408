"""Key rotation: wraps the data keys of older keys with the newest one. The sealed values are not opened."""

from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from gateway.db.pool import Connection, Database
from gateway.errors import InternalError
from gateway.vault.vault import Binding, Sealed, Vault

#: rows between two reports of progress
_BATCH = 200

_CENSUS = "SELECT key_id, count(*) AS rows FROM {table} WHERE key_id IS NOT NULL GROUP BY key_id"
_STALE = """
    SELECT organization_id, {owner} AS owner, {context} AS context, key_id, wrapped_key, {sealed} AS sealed FROM {table}
    WHERE key_id <> $1 OR ({context} IS NOT NULL AND octet_length(wrapped_key) = 60)
"""
# A compare-and-set: credentials that were replaced in the meantime are sealed anew already.
_IS_SAME = "organization_id = $1 AND {owner} = $2 AND wrapped_key = $3"
_REWRAP = f"UPDATE {{table}} SET key_id = $4, wrapped_key = $5 WHERE {_IS_SAME}"
_RESEAL = f"UPDATE {{table}} SET key_id = $4, wrapped_key = $5, sealed = $6 WHERE {_IS_SAME}"


@dataclass(frozen=True, slots=True)
class SealedTable:
    """A table with sealed values: the column that names a row within its organization, and what binds its value."""

    name: str
    owner: str
    #: of organization and owner; of the context too where there is one
    binding: Callable[..., Binding]
    #: SQL for what else the value is bound to
    context: str = "NULL::text"
    #: SQL for the sealed value, where it is not kept beside its key
    sealed: str = "sealed"

    def sql(self, statement: str) -> str:
        return statement.format(table=self.name, owner=self.owner, context=self.context, sealed=self.sealed)

    def binding_of(self, row: Any) -> Binding:
        context = () if row["context"] is None else (row["context"],)
        return self.binding(row["organization_id"], row["owner"], *context)


@dataclass(slots=True)
class Rotation:
    """One pass over everything sealed. It may be interrupted and repeated at any time."""

    database: Database
    vault: Vault
    tables: Sequence[SealedTable]
    #: rows that did not open, `table owner: why`; they stay as they are
    failures: list[str] = field(default_factory=list)

    async def census(self) -> Counter[str]:
        """How many rows each key wraps, by the key's id."""
        counts: Counter[str] = Counter()
        async with self.database.system() as connection:
            for table in self.tables:
                counts.update({row["key_id"]: row["rows"] for row in await connection.fetch(table.sql(_CENSUS))})
        return counts

    async def run(self) -> AsyncIterator[int]:
        """Wrap anew what the newest key does not wrap; yields the number of rows done since the last report."""
        for table in self.tables:
            async with self.database.system() as reading, self.database.system() as writing, reading.transaction():
                batch: list[Any] = []
                async for row in reading.cursor(table.sql(_STALE), self.vault.newest, prefetch=_BATCH):
                    batch.append(row)
                    if len(batch) == _BATCH:
                        yield await self._rewrap(writing, table, batch)
                        batch.clear()
                if batch:
                    yield await self._rewrap(writing, table, batch)

    async def _rewrap(self, writing: Connection, table: SealedTable, rows: Sequence[Any]) -> int:
        for row in rows:
            rewrapped = self._rewrapped(table, row)
            if rewrapped is None:
                continue
            where = (row["organization_id"], row["owner"], row["wrapped_key"], rewrapped.key_id, rewrapped.wrapped_key)
            if rewrapped.sealed == row["sealed"]:
                await writing.execute(table.sql(_REWRAP), *where)
            else:
                await writing.execute(table.sql(_RESEAL), *where, rewrapped.sealed)
        return len(rows)

    def _rewrapped(self, table: SealedTable, row: Any) -> Sealed | None:
        sealed = Sealed(row["key_id"], row["wrapped_key"], row["sealed"])
        try:
            return self.vault.rewrapped(sealed, table.binding_of(row))
        except InternalError as error:
            self.failures.append(f"{table.name} {row['owner']}: {error.detail}")
            return None
