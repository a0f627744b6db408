"""The index of records' words, updated after the records; until then, searches read the records themselves."""

import asyncio
from collections.abc import Sequence
from uuid import UUID

from gateway.context_store import term_dictionary
from gateway.context_store.entities import TIMEOUT, StoredEntity
from gateway.context_store.layout import Tokenizer
from gateway.foundation import payloads
from gateway.foundation.db.pool import Connection

#: rows that are tokenized without a pause
PAUSE_ROWS = 10
#: the first key of the advisory locks of entities whose words are indexed, dropped or removed
_LOCKS = 0x776F7264

# A crash loses both the words and their removal from the queue, or neither. PostgreSQL moves words from the pending
# list to the index in portions of work_mem; one portion takes half the time of many.
LOAD_FAST = "SET LOCAL synchronous_commit = off; SET LOCAL work_mem = '64MB'"
LOCK = f"SELECT pg_advisory_xact_lock({_LOCKS}, $1)"
TRY_LOCK = f"SELECT pg_try_advisory_xact_lock({_LOCKS}, $1)"
LOCK_OF_CONNECTOR = f"""
    SELECT pg_advisory_xact_lock({_LOCKS}, id) FROM (
        SELECT id FROM context_entities WHERE connector_id = $1 ORDER BY id) AS entity
"""
ENQUEUE = "INSERT INTO context_pending_words (entity_id, organization_id, ids) VALUES ($1, $2, $3)"
TAKE = """
    DELETE FROM context_pending_words WHERE entity_id = $1 AND batch = (
        SELECT min(batch) FROM context_pending_words WHERE entity_id = $1)
    RETURNING ids
"""
# A deleted record has no digest. With a condition on `deleted_at`, a server without statistics uses another index.
READ = """
    SELECT id, digest, json_text AS document FROM context_records
    WHERE entity_id = $1 AND id = ANY ($2::text[]) AND digest IS NOT NULL
"""
# A record that has changed meanwhile is in a later batch. A subquery for each record, because a join reads them all.
WRITE = """
    INSERT INTO context_words AS w (entity_id, organization_id, id, digest, terms)
    SELECT $1, $2, n.id, n.digest, array_to_tsvector(string_to_array(n.terms, ' '))
    FROM unnest($3::text[], $4::bigint[], $5::text[]) AS n (id, digest, terms)
    WHERE n.digest = (SELECT r.digest FROM context_records AS r
                      WHERE r.entity_id = $1 AND r.id = n.id)
    ON CONFLICT (entity_id, id) DO UPDATE SET digest = EXCLUDED.digest, terms = EXCLUDED.terms
"""
DROP = "DELETE FROM context_words WHERE entity_id = $1 AND id = ANY ($2::text[])"


async def enqueue(connection: Connection, entity: StoredEntity, ids: Sequence[str]) -> None:
    """Queue the words of these records for the index; call it in the transaction that writes them."""
    await connection.execute(ENQUEUE, entity.id, entity.organization_id, list(ids), timeout=TIMEOUT)


async def catch_up(connection: Connection, entity: StoredEntity) -> int:
    """Index all queued records; returns their number. Does nothing while another process does it."""
    tokenizer = Tokenizer(entity.layout, entity.id)
    indexed = 0
    while True:
        async with connection.transaction():
            await connection.execute(LOAD_FAST)
            is_ours = await connection.fetchval(TRY_LOCK, entity.id)
            ids = await connection.fetchval(TAKE, entity.id, timeout=TIMEOUT) if is_ours else None
            if ids is None:
                return indexed
            await _index(connection, entity, tokenizer, ids)
        indexed += len(ids)


async def drop(connection: Connection, entity: StoredEntity, ids: Sequence[str]) -> None:
    """Delete the words of deleted records."""
    await connection.execute(DROP, entity.id, list(ids), timeout=TIMEOUT)


async def lock(connection: Connection, entity: StoredEntity) -> None:
    """Lock the entity's words against other writers until the transaction ends."""
    await connection.execute(LOCK, entity.id, timeout=TIMEOUT)


async def lock_all(connection: Connection, connector_id: UUID) -> None:
    """Lock the words of all entities of the connector, as `lock` does."""
    await connection.execute(LOCK_OF_CONNECTOR, connector_id, timeout=TIMEOUT)


async def _index(connection: Connection, entity: StoredEntity, tokenizer: Tokenizer, ids: Sequence[str]) -> None:
    rows = await connection.fetch(READ, entity.id, ids, timeout=TIMEOUT)
    terms = await _tokenized(tokenizer, [row["document"] for row in rows])
    arguments = ([row["id"] for row in rows], [row["digest"] for row in rows], terms)
    await connection.execute(WRITE, entity.id, entity.organization_id, *arguments, timeout=TIMEOUT)
    await term_dictionary.add(connection, entity, {term for text in terms for term in text.split()})


async def _tokenized(tokenizer: Tokenizer, documents: Sequence[str]) -> list[str]:
    """The words of the records, tokenized with pauses for the process's other work."""
    tokenized = []
    for start in range(0, len(documents), PAUSE_ROWS):
        await asyncio.sleep(0)
        tokenized += [
            tokenizer.terms(payloads.value(document.encode())) for document in documents[start : start + PAUSE_ROWS]
        ]
    return tokenized
