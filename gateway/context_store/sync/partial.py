"""Retains members of records, and whole records, that lists leave out."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from gateway.context_store.entities import TIMEOUT, StoredEntity
from gateway.foundation import payloads
from gateway.foundation.db.pool import Connection

STORED = """
    SELECT id, json_text AS document FROM context_records
    WHERE entity_id = $1 AND id = ANY ($2::text[]) AND deleted_at IS NULL
"""
# Records that the list never contains count as seen.
EXEMPT = """
    INSERT INTO context_marks (entity_id, organization_id, generation, id)
    SELECT $1, $2, $3, id FROM context_records AS r
    WHERE entity_id = $1 AND deleted_at IS NULL AND generation < $3
      AND NOT EXISTS (SELECT FROM jsonb_each($4::text::jsonb) AS member (name, value)
                      WHERE r.document -> member.name IS DISTINCT FROM member.value)
    ON CONFLICT DO NOTHING
"""


async def completed(
    connection: Connection, entity: StoredEntity, live: Sequence[tuple[str, bytes]]
) -> list[tuple[str, bytes]]:
    """The records, completed with the stored members that a list with fewer members left out."""
    rows = await connection.fetch(STORED, entity.id, [id_ for id_, _ in live], timeout=TIMEOUT)
    stored = {row["id"]: payloads.members(row["document"].encode()) for row in rows}
    return [
        (id_, msgspec.json.encode({**stored[id_], **payloads.members(document)}) if id_ in stored else document)
        for id_, document in live
    ]


async def exempt(connection: Connection, entity: StoredEntity, generation: int, unlisted: Mapping[str, Any]) -> None:
    """Mark the records that have these members as seen, so that the sweep does not delete them."""
    members = msgspec.json.encode(unlisted).decode()
    await connection.execute(EXEMPT, entity.id, entity.organization_id, generation, members, timeout=TIMEOUT)
