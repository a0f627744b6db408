"""The parents of an entity's records: read from their copy in the order of ids."""

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import msgspec

from gateway.context_store.entities import TIMEOUT, StoredEntity
from gateway.context_store.sync.checkpoint import ParentRecord
from gateway.foundation import payloads
from gateway.foundation.db.pool import Database
from gateway.kinds.sync import Parent

#: parents fetched at a time
_BATCH = 200

# A record is changed if the copy observed it since; the application's own times do not matter. Stored ids that are
# unique only below a parent begin with the parent's id: `C1/1.5` lies between `C1/` and `C10`.
NEXT = """
    SELECT r.id, r.json_text AS document, observed_at >= $3 AS is_changed,
        NOT EXISTS (SELECT FROM context_records AS child
                    WHERE child.entity_id = $7 AND child.id > r.id || '/' AND child.id < r.id || '0')
            AS is_childless
    FROM context_records AS r
    WHERE entity_id = $1 AND id > $2 AND deleted_at IS NULL
      AND (NOT $8 OR observed_at >= $3::timestamptz)
      AND document @> $4::text::jsonb
      AND (SELECT count(*) FROM unnest($5::text[]) AS name WHERE document ->> name IS NULL) = 0
    ORDER BY id LIMIT $6
"""
ONE = """
    SELECT id, json_text AS document FROM context_records
    WHERE entity_id = $1 AND id = $2 AND deleted_at IS NULL
"""

#: in `where`, a member that has any value
_ANY = "*"


@dataclass(frozen=True)
class Parents:
    """The records of an entity that records of another one belong to."""

    database: Database
    entity: StoredEntity
    #: the entity of the records below
    below: StoredEntity
    spec: Parent

    async def after(self, last: str | None, since: float | None) -> AsyncIterator[ParentRecord]:
        """The parents after `last`, by id; with `since` only changed ones, if the spec says that these suffice.

        A parent is new if it has no records yet or, if that is unknown, if it has changed.
        """
        equal = {name: value for name, value in self.spec.where.items() if value != _ANY}
        present = [name for name, value in self.spec.where.items() if value == _ANY]
        start = datetime.fromtimestamp(since or 0.0, UTC)
        is_narrow = since is not None and self.spec.only_changed
        having = (msgspec.json.encode(equal).decode(), present)
        while True:
            arguments = (self.entity.id, last or "", start, *having, _BATCH, self.below.id, is_narrow)
            async with self.database.all_copies(self.entity.organization_id) as connection:
                rows = await connection.fetch(NEXT, *arguments, timeout=TIMEOUT)
            for row in rows:
                yield _parent(row, row["is_childless"] if self.spec.scopes_ids else row["is_changed"])
            if len(rows) < _BATCH:
                return
            last = rows[-1]["id"]

    async def one(self, id_: str) -> ParentRecord | None:
        """The parent; None if it was deleted."""
        async with self.database.all_copies(self.entity.organization_id) as connection:
            row = await connection.fetchrow(ONE, self.entity.id, id_, timeout=TIMEOUT)
        return row and _parent(row, is_new=False)


def _parent(row: Mapping[str, Any], is_new: bool) -> ParentRecord:
    return ParentRecord(row["id"], payloads.value(row["document"].encode()), is_new)
