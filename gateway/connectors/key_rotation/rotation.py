"""Key rotation: wraps the data keys with the newest key. The sealed values are neither read nor changed."""

from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from gateway.errors import InternalError
from gateway.foundation.db.pool import Connection, Database
from gateway.foundation.db.rows import readable
from gateway.foundation.vault.vault import Binding, Sealed, Vault

#: rows after which progress is reported
_BATCH = 200

_CENSUS = "SELECT key_id, count(*) AS rows FROM {table} WHERE key_id IS NOT NULL GROUP BY key_id"
_STALE = """
    SELECT organization_id, {owner} AS owner, {context} AS context, key_id, wrapped_key FROM {table} WHERE key_id <> $1
"""
# Compare-and-set: values that were replaced meanwhile are already sealed with the newest key.
_REWRAP = """
    UPDATE {table} SET key_id = $4, wrapped_key = $5 WHERE organization_id = $1 AND {owner} = $2 AND wrapped_key = $3
"""


@dataclass(frozen=True, slots=True)
class SealedTable:
    """A table with sealed values: the column that identifies a row within its organization, and the binding."""

    name: str
    owner: str
    #: (organization, owner[, context]) → the binding
    binding: Callable[..., Binding]
    #: SQL of the context to which the value is bound
    context: str = "NULL::text"

    def sql(self, statement: str) -> str:
        return statement.format(table=self.name, owner=self.owner, context=self.context)

    def binding_of(self, row: Any) -> Binding:
        context = () if row["context"] is None else (row["context"],)
        return self.binding(row["organization_id"], row["owner"], *context)


async def census(database: Database, tables: Sequence[SealedTable]) -> Counter[str]:
    """Key id → the number of rows that it wraps; needs no key."""
    counts: Counter[str] = Counter()
    async with database.system() as connection:
        for table in tables:
            counts.update({row["key_id"]: row["rows"] for row in await connection.fetch(table.sql(_CENSUS))})
    return counts


@dataclass(slots=True)
class Rotation:
    """One pass over all sealed values, which may be interrupted and repeated."""

    database: Database
    vault: Vault
    tables: Sequence[SealedTable]
    #: rows that cannot be decrypted, as `table owner: reason`; they stay unchanged
    failures: list[str] = field(default_factory=list)

    async def run(self) -> AsyncIterator[int]:
        """Wrap the data keys of older keys; yields the number of rows since the last report."""
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
            if rewrapped is not None:
                where = (row["organization_id"], row["owner"], row["wrapped_key"])
                await writing.execute(table.sql(_REWRAP), *where, rewrapped.key_id, rewrapped.wrapped_key)
        return len(rows)

    def _rewrapped(self, table: SealedTable, row: Any) -> Sealed | None:
        def rewrapped(row: Any) -> Sealed:
            return self.vault.rewrapped(Sealed(row["key_id"], row["wrapped_key"], b""), table.binding_of(row))

        found = readable(row, rewrapped, "a sealed value", key="owner")
        if isinstance(found, InternalError):
            self.failures.append(f"{table.name} {row['owner']}: {found.detail}")
            return None
        return found
