"""The distinct terms of each entity: finds the words that contain a part of a word, without reading records."""

import re
from collections.abc import Iterable, Mapping, Sequence

from gateway.context_store.entities import TIMEOUT, StoredEntity
from gateway.foundation.db.pool import Connection

#: characters that a part must have to be looked up; shorter words are not in the dictionary
MIN_PART = 3
#: maximum words with one part that a search looks up one by one
MAX_WORDS = 100
BATCH_TERMS = 500

# Looked up first: finding an existing term costs much less than an insert that does nothing.
ADD = """
    INSERT INTO context_terms (entity_id, organization_id, term)
    SELECT $1, $2, added.term FROM unnest($3::text[]) AS added (term)
    WHERE NOT EXISTS (SELECT FROM context_terms AS t WHERE t.entity_id = $1 AND t.term = added.term)
    ON CONFLICT DO NOTHING
"""
CONTAINING = "SELECT prefix, part, terms FROM context_terms_containing($1, $2, $3, $4)"
IN_USE = "SELECT term, is_used FROM context_terms_in_use($1, $2, $3)"
DROP = "DELETE FROM context_terms WHERE entity_id = $1 AND term = ANY ($2::text[])"

#: terms of words; not numbers, and not the mark of a truncated text
_WORD = re.compile(rf"\d+/\d+/[^#~].{{{MIN_PART - 1},}}")

#: (prefix of a field's terms, part of a word) → the terms that contain it, or None if they are too many
Containing = Mapping[tuple[str, str], Sequence[str] | None]


async def add(connection: Connection, entity: StoredEntity, terms: Iterable[str]) -> None:
    """Add the terms of records; call it in the transaction that writes them, while the entity is locked."""
    indexable = [term for term in terms if _WORD.fullmatch(term)]
    if indexable:
        await connection.execute(ADD, entity.id, entity.organization_id, indexable, timeout=TIMEOUT)


async def containing(connection: Connection, entity: StoredEntity, parts: Sequence[tuple[str, str]]) -> Containing:
    """The terms that contain each part; parts that are too short for the dictionary are missing."""
    prefixes, words = zip(*parts, strict=True)
    rows = await connection.fetch(CONTAINING, entity.id, prefixes, words, MAX_WORDS, timeout=TIMEOUT)
    return {(row["prefix"], row["part"]): row["terms"] for row in rows}


async def drop_unused(connection: Connection, entity: StoredEntity, after: str = "") -> str | None:
    """Delete unused terms among the next batch; returns where to continue, or None at the end.

    Call it in a transaction that has locked the entity, so that no writer adds such a term meanwhile.
    """
    rows = await connection.fetch(IN_USE, entity.id, after, BATCH_TERMS, timeout=TIMEOUT)
    unused = [row["term"] for row in rows if not row["is_used"]]
    if unused:
        await connection.execute(DROP, entity.id, unused, timeout=TIMEOUT)
    return rows[-1]["term"] if len(rows) == BATCH_TERMS else None
