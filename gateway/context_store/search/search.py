"""Searches the context store."""

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from uuid import UUID

import asyncpg
import msgspec

from gateway.context_store import term_dictionary
from gateway.context_store.documents import projected, projection
from gateway.context_store.entities import StoredEntity, find
from gateway.context_store.search.cursors import Cursors, Position
from gateway.context_store.search.filters import Query
from gateway.context_store.search.planner import Phase, Plan, Statement, page, plan_search
from gateway.context_store.search.terms import Vocabulary
from gateway.errors import FieldError, InvalidQuery
from gateway.foundation.aio.turns import computing_for
from gateway.foundation.db.pool import Connection
from gateway.foundation.least_used import LeastUsed

#: timeout of a search in seconds, after which PostgreSQL cancels it
TIME_LIMIT = 5.0
#: replaces the pool's timeout of a statement, in seconds, because the search as a whole has one
NO_LIMIT = 3_600.0
#: seconds for which an entity's layout and common words are cached; they affect the plan, not the matches
REMEMBERED = 30.0
MAX_REMEMBERED = 10_000

FORCE_CUSTOM_PLAN = "SET LOCAL plan_cache_mode = force_custom_plan"


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchPage:
    """One page of a search."""

    data: Sequence[msgspec.Raw]
    has_more: bool
    #: the cursor of the next page; None on the last
    cursor: str | None
    took_ms: int
    #: the time as of which the copy is complete; None before the first load
    as_of: datetime | None
    total_synced: int
    #: whether the copy was loaded and lacks no records
    is_complete: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class _PageRows:
    """Rows of a page, and one more if there is a next page."""

    rows: Sequence[Mapping[str, Any]] = ()
    as_of: datetime | None = None
    total: int = 0
    is_complete: bool = False
    #: false if a bitmap scan found too many records; `rows` are then meaningless
    is_within_limit: bool = True


class ContextStore:
    """Searches of one process; signs its cursors with `cursor_key`, which all processes share."""

    def __init__(self, cursor_key: bytes, *, time_limit: float = TIME_LIMIT) -> None:
        self._cursor_key = cursor_key
        self._time_limit = time_limit
        self._remembered: dict[tuple[UUID, str], tuple[float, StoredEntity]] = {}
        self._used: LeastUsed[tuple[UUID, str]] = LeastUsed(MAX_REMEMBERED)

    async def search(
        self, connection: Connection, connector_id: UUID, entity: str, query: Query, at: str = ""
    ) -> SearchPage:
        """The page of the query; before the first load it is empty.

        Raises InvalidQuery for a cursor of another search, and for a search that takes longer than the time limit; its
        pointers begin with `at`.
        """
        began = time.perf_counter()
        cursors = Cursors.of(self._cursor_key, connector_id, entity, query)
        after = cursors.read(query.cursor, at) if query.cursor is not None else None
        try:
            async with asyncio.timeout(self._time_limit):
                page_rows = await self._rows(connection, connector_id, entity, query, after)
        except (TimeoutError, asyncpg.QueryCanceledError) as error:
            message = f"too expensive: narrow it; the search took longer than {self._time_limit:g} s"
            raise InvalidQuery(
                message, faults=[FieldError(f"{at}/query", "query", "too_expensive", message)]
            ) from error
        rows = page_rows.rows[: query.limit]
        has_more = len(page_rows.rows) > query.limit
        return SearchPage(
            data=_data(rows, query),
            has_more=has_more,
            cursor=cursors.issued(_position(rows[-1], query)) if has_more else None,
            took_ms=round((time.perf_counter() - began) * 1000),
            as_of=page_rows.as_of,
            total_synced=page_rows.total,
            is_complete=page_rows.is_complete,
        )

    async def _rows(
        self, connection: Connection, connector_id: UUID, name: str, query: Query, after: Position | None
    ) -> _PageRows:
        """The matching rows; if the cached entity no longer exists, it is looked up again."""
        recalled = self._recalled(connector_id, name)
        page_rows = recalled and await _read(connection, await _plan(connection, recalled, query), after)
        if page_rows:
            return page_rows
        entity = await self._looked_up(connection, connector_id, name)
        return (entity and await _read(connection, await _plan(connection, entity, query), after)) or _PageRows()

    def _recalled(self, connector_id: UUID, name: str) -> StoredEntity | None:
        since, entity = self._remembered.get((connector_id, name), (0.0, None))
        return entity if time.monotonic() - since < REMEMBERED else None

    async def _looked_up(self, connection: Connection, connector_id: UUID, name: str) -> StoredEntity | None:
        entity = await find(connection, connector_id, name)
        if entity:
            self._used.discard((connector_id, name))
            self._remembered[connector_id, name] = time.monotonic(), entity
            for dropped in self._used.add((connector_id, name), computing_for()):
                del self._remembered[dropped]
        return entity


async def _plan(connection: Connection, entity: StoredEntity, query: Query) -> Plan:
    """The plan, after a look-up of parts of words in the dictionary.

    The page may miss a record whose words are indexed between the two statements and that matches by a word that is new
    to the entity.
    """
    parts = Vocabulary.of(entity).parts(query.filter)
    return plan_search(entity, query, await term_dictionary.containing(connection, entity, parts) if parts else None)


async def _read(connection: Connection, plan: Plan, after: Position | None) -> _PageRows | None:
    """The rows of the page; None if the organization has no such entity."""
    if plan.words:
        page_rows = await _fetch(connection, page(plan, Phase.ALL, plan.query.limit + 1, after, is_bitmap=True))
        if page_rows is None or page_rows.is_within_limit:
            return page_rows
    if not plan.is_planners_choice:
        return await _index_scan(connection, plan, after)
    async with connection.transaction():
        await connection.execute(FORCE_CUSTOM_PLAN)
        return await _index_scan(connection, plan, after)


async def _index_scan(connection: Connection, plan: Plan, after: Position | None) -> _PageRows | None:
    rows: list[Mapping[str, Any]] = []
    page_rows: _PageRows | None = None
    limit = plan.query.limit + 1
    for phase, start in plan.phases(after):
        page_rows = await _fetch(connection, page(plan, phase, limit - len(rows), start))
        rows += page_rows.rows if page_rows else ()
        if page_rows is None or len(rows) == limit:
            break
    return page_rows and replace(page_rows, rows=rows)


async def _fetch(connection: Connection, statement: Statement) -> _PageRows | None:
    rows = await connection.fetch(statement.text, *statement.arguments, timeout=NO_LIMIT)
    if not rows:
        return None
    first = rows[0]
    return _PageRows(
        rows=rows if first["id"] is not None else (),
        as_of=first["last_synced_at"],
        total=first["records"],
        is_complete=first["is_complete"],
        is_within_limit=first["is_within_limit"],
    )


def _data(rows: Sequence[Mapping[str, Any]], query: Query) -> list[msgspec.Raw]:
    if query.fields is None:
        return [msgspec.Raw(row["document"].encode()) for row in rows]
    tree = projection(query.fields)
    return [projected(row["document"], tree) for row in rows]


def _position(row: Mapping[str, Any], query: Query) -> Position:
    return Position(tuple(row[f"sort_{number}"] for number in range(len(query.sort))), row["id"])
