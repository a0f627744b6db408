"""Writes records in batches; skips unchanged ones, and never replaces a record by an older response."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

import asyncpg
import msgspec

from gateway.context_store import term_dictionary, word_index
from gateway.context_store.documents import cleaned, digest
from gateway.context_store.entities import TIMEOUT, StoredEntity
from gateway.context_store.layout import KEY_LENGTH, NUMBER_KEY, TEXT_KEYS
from gateway.errors import NotFound
from gateway.events.deliverer import MAX_RECORD, RecordsOfDeliveries
from gateway.events.recording import add_record_events
from gateway.foundation.aio.clock import CLOCK
from gateway.foundation.db.pool import Connection, Database

BATCH_ROWS = 1_000
BATCH_BYTES = 4 * 1024 * 1024

# A crash of PostgreSQL may lose the last batches, and with them their checkpoints, so that they are read again.
LOAD_FAST = "SET LOCAL synchronous_commit = off"

# One writer per entity at a time, so that what it has read stays current and the count of records is exact.
LOCK = "SELECT generation FROM context_entities WHERE id = $1 FOR NO KEY UPDATE"

STORED = """
    SELECT id, digest, deleted_at IS NULL AS is_live, observed_at > $3 AS is_newer, absent_in IS NOT NULL AS is_absent
    FROM context_records WHERE entity_id = $1 AND id = ANY ($2::text[])
"""
# Without `OFFSET 0`, PostgreSQL would parse each text once for every use of the document.
ADD = f"""
    INSERT INTO context_records AS r
        (entity_id, organization_id, generation, observed_at, id, document, digest, json_text, key_a, key_b, key_n)
    SELECT $1, $2, $3, $4, n.id, n.document, n.digest, n.json_text,
        left(context_text(n.document #> $8::text[]), {KEY_LENGTH}),
        left(context_text(n.document #> $9::text[]), {KEY_LENGTH}),
        context_double(n.document #> $10::text[])
    FROM (SELECT *, json_text::jsonb AS document
          FROM unnest($5::text[], $6::text[], $7::bigint[]) AS given (id, json_text, digest)
          OFFSET 0) AS n
"""
WRITE = f"""{ADD}
    ON CONFLICT (entity_id, id) DO UPDATE SET
        document = EXCLUDED.document, digest = EXCLUDED.digest, json_text = EXCLUDED.json_text,
        key_a = EXCLUDED.key_a, key_b = EXCLUDED.key_b, key_n = EXCLUDED.key_n,
        generation = EXCLUDED.generation, observed_at = EXCLUDED.observed_at, deleted_at = NULL, absent_in = NULL
"""
MARK_SEEN = """
    INSERT INTO context_marks (entity_id, organization_id, generation, id)
    SELECT $1, $2, $3, unnest($4::text[])
    ON CONFLICT DO NOTHING
"""
COUNT = "UPDATE context_entities SET records = records + $2 WHERE id = $1"

# A document is null if it is larger than $5 bytes, or if those before it fill $6 bytes.
DOCUMENTS = """
    SELECT id, size > $5 AS is_large, CASE WHEN size <= $5 AND taken <= $6 THEN document END AS document
    FROM (
        SELECT r.id, r.json_text AS document, octet_length(r.json_text) AS size,
               sum(octet_length(r.json_text)) FILTER (WHERE octet_length(r.json_text) <= $5) OVER (ORDER BY place)
                   AS taken
        FROM unnest($4::text[]) WITH ORDINALITY AS wanted (id, place)
        JOIN context_entities AS e ON e.organization_id = $1 AND e.connector_id = $2 AND e.entity = $3
        JOIN context_records AS r ON r.entity_id = e.id AND r.id = wanted.id AND r.deleted_at IS NULL
    ) AS found
"""

# Unknown ids get a tombstone too: a page that was read before the deletion must not restore them.
TOMBSTONE = """
    INSERT INTO context_records AS r (entity_id, organization_id, generation, observed_at, id, document, deleted_at)
    SELECT $1, $2, $3, $4, id, '{}', now() FROM unnest($5::text[]) AS id
    ON CONFLICT (entity_id, id) DO UPDATE SET
        document = '{}', json_text = NULL, digest = NULL, key_a = NULL, key_b = NULL, key_n = NULL,
        observed_at = EXCLUDED.observed_at, deleted_at = EXCLUDED.deleted_at, absent_in = NULL
    WHERE r.deleted_at IS NULL AND r.observed_at <= EXCLUDED.observed_at
"""
SEEN_AGAIN = "UPDATE context_records SET absent_in = NULL WHERE entity_id = $1 AND id = ANY ($2::text[])"
# A record may have come back meanwhile, so its own row says once more that it is a tombstone.
DELETE_TOMBSTONES = """
    DELETE FROM context_records WHERE deleted_at IS NOT NULL AND (entity_id, id) IN (
        SELECT entity_id, id FROM context_records
        WHERE entity_id = $1 AND deleted_at < now() - make_interval(days => $2) LIMIT $3)
"""
_REMOVE_SOME = """
    DELETE FROM {table} WHERE (entity_id, {key}) IN (
        SELECT t.entity_id, t.{key} FROM {table} AS t JOIN context_entities AS e ON e.id = t.entity_id
        WHERE e.connector_id = $1 LIMIT $2)
"""
REMOVE_RECORDS = _REMOVE_SOME.format(table="context_records", key="id")
REMOVE_WORDS = _REMOVE_SOME.format(table="context_words", key="id")
REMOVE_TERMS = _REMOVE_SOME.format(table="context_terms", key="term")
REMOVE_SEEN = """
    DELETE FROM context_marks AS m USING context_entities AS e WHERE e.id = m.entity_id AND e.connector_id = $1
"""
REMOVE_PENDING = """
    DELETE FROM context_pending_words AS w USING context_entities AS e WHERE e.id = w.entity_id AND e.connector_id = $1
"""
# Every writer locks the entity first, so that later writers find none, and earlier writes are visible here.
LOCK_ENTITIES = "SELECT id FROM context_entities WHERE connector_id = $1 ORDER BY id FOR UPDATE"
REMOVE_ENTITIES = "DELETE FROM context_entities WHERE connector_id = $1"


@dataclass(frozen=True, slots=True)
class Written:
    """The number of added, changed and unchanged records; a record older than the stored one counts as unchanged."""

    added: int = 0
    changed: int = 0
    unchanged: int = 0

    def __add__(self, other: "Written") -> "Written":
        return Written(self.added + other.added, self.changed + other.changed, self.unchanged + other.unchanged)


async def upsert(
    connection: Connection,
    entity: StoredEntity,
    records: Iterable[tuple[str, bytes]],
    *,
    generation: int | None = None,
    observed_at: datetime | None = None,
) -> Written:
    """Store records, each a JSON object; `generation` marks them as seen by that sweep.

    Searches find them at once, and faster by their words after `word_index.catch_up`. `observed_at`: when the request
    was sent to the application. Raises NotFound if the entity was deleted.
    """
    written = Written()
    for batch in _batches(records):
        async with connection.transaction():
            await connection.execute(LOAD_FAST)
            written += await _write(connection, entity, batch, generation, observed_at or CLOCK.now())
    return written


async def documents(
    database: Database,
    organization_id: UUID,
    client_id: UUID,
    connector_id: UUID,
    entity: str,
    ids: Sequence[str],
    room: int,
) -> RecordsOfDeliveries:
    """The records of the copy for deliveries to a client or a person, as many as have room in so many bytes."""
    arguments = (organization_id, connector_id, entity, list(dict.fromkeys(ids)), MAX_RECORD, room)
    async with database.tenant(organization_id, client_id) as connection:
        rows = await connection.fetch(DOCUMENTS, *arguments, timeout=TIMEOUT)
    found = {row["id"]: msgspec.Raw(row["document"].encode()) for row in rows if row["document"] is not None}
    later = {row["id"] for row in rows if row["document"] is None and not row["is_large"]}
    return RecordsOfDeliveries(found, later)


async def mark_deleted(
    connection: Connection, entity: StoredEntity, ids: Sequence[str], *, observed_at: datetime | None = None
) -> int:
    """Replace records by tombstones; returns the number of records that existed."""
    async with connection.transaction():
        return await tombstone(connection, entity, ids, observed_at or CLOCK.now())


async def drop_unused_terms(connection: Connection, entity: StoredEntity) -> None:
    """Delete unused words from the dictionary; fast once the pending list is clean."""
    after: str | None = ""
    while after is not None:
        async with connection.transaction():
            await word_index.lock(connection, entity)
            after = await term_dictionary.drop_unused(connection, entity, after)


async def delete_tombstones(connection: Connection, entity: StoredEntity, *, days: int) -> int:
    """Delete tombstones older than `days`; returns their number."""
    return await _until_none(connection, DELETE_TOMBSTONES, entity.id, days)


async def remove(connection: Connection, connector_id: UUID) -> int:
    """Delete all data of a connector, in batches; returns the number of records."""
    removed = await _until_none(connection, REMOVE_RECORDS, connector_id)
    await _until_none(connection, REMOVE_WORDS, connector_id)
    async with connection.transaction():
        await word_index.lock_all(connection, connector_id)
        await connection.execute(LOCK_ENTITIES, connector_id, timeout=TIMEOUT)
        removed += await _until_none(connection, REMOVE_RECORDS, connector_id)
        await _until_none(connection, REMOVE_WORDS, connector_id)
        await connection.execute(REMOVE_PENDING, connector_id, timeout=TIMEOUT)
        await connection.execute(REMOVE_SEEN, connector_id, timeout=TIMEOUT)
        await _until_none(connection, REMOVE_TERMS, connector_id)
        await connection.execute(REMOVE_ENTITIES, connector_id)
    return removed


async def _write(
    connection: Connection,
    entity: StoredEntity,
    batch: Mapping[str, bytes],
    sweep_generation: int | None,
    observed_at: datetime,
) -> Written:
    generation = await lock(connection, entity)
    digests = {id_: digest(document) for id_, document in batch.items()}
    stored = await connection.fetch(STORED, entity.id, list(batch), observed_at, timeout=TIMEOUT)
    live = {row["id"] for row in stored if row["is_live"]}
    same = {row["id"] for row in stored if row["is_newer"] or row["digest"] == digests[row["id"]]}
    changed = {id_: document for id_, document in batch.items() if id_ not in same}
    created = [id_ for id_ in changed if id_ not in live]
    head = (entity.id, entity.organization_id, generation if sweep_generation is None else sweep_generation)
    if changed:
        statement = WRITE if stored else ADD  # a tenth faster, and the entity is locked
        await _store(
            connection,
            entity,
            statement=statement,
            head=(*head, observed_at),
            changed=changed,
            digests=[digests[id_] for id_ in changed],
        )
        await connection.execute(COUNT, entity.id, len(created))
        await _add_events(connection, entity, created=created, updated=[id_ for id_ in changed if id_ in live])
    if sweep_generation is not None and same:
        await connection.execute(MARK_SEEN, *head, list(same), timeout=TIMEOUT)
    if again := [row["id"] for row in stored if row["is_absent"]]:
        await connection.execute(SEEN_AGAIN, entity.id, again, timeout=TIMEOUT)
    return Written(len(created), len(changed) - len(created), len(same))


async def _store(
    connection: Connection,
    entity: StoredEntity,
    statement: str,
    head: tuple[object, ...],
    changed: Mapping[str, bytes],
    digests: list[int],
) -> None:
    """Write the records; if PostgreSQL cannot store them unchanged, write them cleaned."""
    try:
        async with connection.transaction():
            await _insert(connection, entity, statement=statement, head=head, changed=changed, digests=digests)
    except (asyncpg.DataError, asyncpg.ProgramLimitExceededError, msgspec.MsgspecError, UnicodeError):
        storable = {id_: cleaned(document) for id_, document in changed.items()}
        await _insert(connection, entity, statement=statement, head=head, changed=storable, digests=digests)


async def _insert(
    connection: Connection,
    entity: StoredEntity,
    statement: str,
    head: tuple[object, ...],
    changed: Mapping[str, bytes],
    digests: list[int],
) -> None:
    """Write the records, and queue their words for the index."""
    keys = [_path(entity.layout.keys.get(column)) for column in (*TEXT_KEYS, NUMBER_KEY)]
    texts = [document.decode() for document in changed.values()]
    await connection.execute(statement, *head, list(changed), texts, digests, *keys, timeout=TIMEOUT)
    await word_index.enqueue(connection, entity, list(changed))


async def tombstone(connection: Connection, entity: StoredEntity, ids: Sequence[str], observed_at: datetime) -> int:
    """As `mark_deleted`, within the caller's transaction."""
    generation = await lock(connection, entity)
    stored = await connection.fetch(STORED, entity.id, list(ids), observed_at, timeout=TIMEOUT)
    live = [row["id"] for row in stored if row["is_live"] and not row["is_newer"]]
    head = (entity.id, entity.organization_id, generation, observed_at)
    await connection.execute(TOMBSTONE, *head, list(dict.fromkeys(ids)), timeout=TIMEOUT)
    await word_index.drop(connection, entity, ids)
    await connection.execute(COUNT, entity.id, -len(live))
    await _add_events(connection, entity, deleted=live)
    return len(live)


async def _add_events(connection: Connection, entity: StoredEntity, **changes: Sequence[str]) -> None:
    """Add events to the organization's feed, in the transaction that writes the records."""
    await add_record_events(connection, entity.organization_id, entity.connector_id, entity.entity, **changes)


async def lock(connection: Connection, entity: StoredEntity) -> int:
    """Lock the entity against other writers until the transaction ends; returns the current generation."""
    generation = await connection.fetchval(LOCK, entity.id, timeout=TIMEOUT)
    if generation is None:
        raise NotFound(f"{entity.entity} of this connector is no longer in the context store")
    return int(generation)


async def _until_none(connection: Connection, statement: str, *arguments: object) -> int:
    """Repeat a deleting statement until it finds nothing, so that no transaction holds many rows for long."""
    total = 0
    while True:
        done = await connection.execute(statement, *arguments, BATCH_ROWS * 10, timeout=TIMEOUT)
        count = int(str(done).rpartition(" ")[2])
        total += count
        if count == 0:
            return total


def _path(field: str | None) -> list[str] | None:
    return field.split(".") if field else None


def _batches(records: Iterable[tuple[str, bytes]]) -> Iterator[dict[str, bytes]]:
    """The records in batches of limited size; of two records with the same id, the later one counts."""
    batch: dict[str, bytes] = {}
    size = 0
    for id_, document in records:
        if batch and (len(batch) >= BATCH_ROWS or size + len(document) > BATCH_BYTES):
            yield batch
            batch, size = {}, 0
        batch[id_] = document
        size += len(document)
    if batch:
        yield batch
