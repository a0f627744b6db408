"""The records below which others lie, walked by id as they stand in the store."""

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import msgspec

from gateway.connectors.spec import Parent
from gateway.context_store.entities import Entity
from gateway.context_store.places import ParentRecord
from gateway.db.pool import Database

#: parents fetched at a time, and seconds that this may take
_BATCH, _LIMIT = 200, 30.0

# Changed is what the store learned since, whatever the application says of the time.
NEXT = """
    SELECT id, document::text AS document FROM context_records
    WHERE entity_id = $1 AND id > $2 AND deleted_at IS NULL
      AND ($3::timestamptz IS NULL OR observed_at >= $3)
      AND document @> $4::text::jsonb
      AND (SELECT count(*) FROM unnest($5::text[]) AS name WHERE document ->> name IS NULL) = 0
    ORDER BY id LIMIT $6
"""
ONE = """
    SELECT id, document::text AS document FROM context_records
    WHERE entity_id = $1 AND id = $2 AND deleted_at IS NULL
"""

#: in `where`, a member that has any value
_ANY = "*"


@dataclass(frozen=True)
class Parents:
    """The live records of one entity that have others below them."""

    database: Database
    entity: Entity
    spec: Parent

    async def after(self, last: str | None, since: float | None) -> AsyncIterator[ParentRecord]:
        """Those after the last one by id; with `since` only those that changed, where that is all that matters."""
        equal = {name: value for name, value in self.spec.where.items() if value != _ANY}
        present = [name for name, value in self.spec.where.items() if value == _ANY]
        changed = datetime.fromtimestamp(since, UTC) if since is not None and self.spec.only_changed else None
        while True:
            arguments = (self.entity.id, last or "", changed, msgspec.json.encode(equal).decode(), present, _BATCH)
            async with self.database.tenant(self.entity.organization_id) as connection:
                rows = await connection.fetch(NEXT, *arguments, timeout=_LIMIT)
            for row in rows:
                yield _parent(row)
            if len(rows) < _BATCH:
                return
            last = rows[-1]["id"]

    async def one(self, id_: str) -> ParentRecord | None:
        """The parent, unless it is gone."""
        async with self.database.tenant(self.entity.organization_id) as connection:
            row = await connection.fetchrow(ONE, self.entity.id, id_, timeout=_LIMIT)
        return row and _parent(row)


def _parent(row: Mapping[str, Any]) -> ParentRecord:
    return ParentRecord(row["id"], msgspec.json.decode(row["document"]))
