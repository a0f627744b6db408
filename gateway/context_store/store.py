"""Searching the context store."""

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import asyncpg
import msgspec

from gateway.context_store.cursors import Cursors, Position
from gateway.context_store.documents import projected, projection
from gateway.context_store.entities import find
from gateway.context_store.filters import Query
from gateway.context_store.pages import Phase, Plan, Statement, page, planned
from gateway.db.pool import Connection
from gateway.errors import Fault, InvalidQuery

#: seconds that a search may take
TIME_LIMIT = 5.0

CANDIDATES = "SELECT context_candidates($1, $2::text::tsquery, $3)"
FORCE_CUSTOM_PLAN = "SET LOCAL plan_cache_mode = force_custom_plan"


@dataclass(frozen=True, slots=True)
class SearchPage:
    """One page of a search."""

    data: Sequence[msgspec.Raw]
    has_more: bool
    #: where the next page starts; None after the last
    cursor: str | None
    took_ms: int
    #: what the application held at this time is in the store; None before the first load
    as_of: datetime | None
    total_synced: int


async def search(
    connection: Connection, connector_id: UUID, entity: str, query: Query, *, cursor_key: bytes
) -> SearchPage:
    """The page that the query asks for; before the first load it is empty.

    Raises InvalidQuery for a cursor of another search, and for a search that takes longer than the time limit.
    """
    began = time.perf_counter()
    cursors = Cursors.of(cursor_key, connector_id, entity, query)
    after = cursors.read(query.cursor) if query.cursor else None
    stored = await find(connection, connector_id, entity)
    rows = await _within_limit(_Search(connection, planned(stored, query), after).rows()) if stored else []
    kept = rows[: query.limit]
    has_more = len(rows) > query.limit
    return SearchPage(
        data=_data(kept, query),
        has_more=has_more,
        cursor=cursors.issued(_position(kept[-1], query)) if has_more else None,
        took_ms=round((time.perf_counter() - began) * 1000),
        as_of=stored.last_synced_at if stored else None,
        total_synced=stored.records if stored else 0,
    )


class _Search:
    """Reads the rows of one page, one more than it holds if there are more."""

    def __init__(self, connection: Connection, plan: Plan, after: Position | None) -> None:
        self._connection = connection
        self._plan = plan
        self._after = after

    async def rows(self) -> list[Any]:
        ids = await self._gathered()
        if ids is not None:
            return await self._fetched(page(self._plan, Phase.WHOLE, self._wanted, self._after, ids))
        if not self._plan.is_planned:
            return await self._walked()
        async with self._connection.transaction():
            await self._connection.execute(FORCE_CUSTOM_PLAN)
            return await self._walked()

    @property
    def _wanted(self) -> int:
        return self._plan.query.limit + 1

    async def _gathered(self) -> Sequence[str] | None:
        """The ids that the word index finds, or None when it can't tell or there are too many to fetch."""
        plan = self._plan
        if plan.words is None:
            return None
        ids: Sequence[str] = (
            await self._connection.fetchval(
                CANDIDATES, plan.entity.id, plan.words.text, plan.most + 1, timeout=TIME_LIMIT
            )
            or []
        )
        return ids if len(ids) <= plan.most else None

    async def _walked(self) -> list[Any]:
        rows: list[Any] = []
        for phase in self._plan.phases:
            after = self._after
            if after and phase is Phase.PRESENT and after.values[0] is None:
                continue
            if after and phase is Phase.MISSING and after.values[0] is not None:
                after = None
            rows += await self._fetched(page(self._plan, phase, self._wanted - len(rows), after))
            if len(rows) == self._wanted:
                break
        return rows

    async def _fetched(self, statement: Statement) -> list[Any]:
        return list(await self._connection.fetch(statement.text, *statement.arguments, timeout=TIME_LIMIT))


async def _within_limit(rows: Any) -> list[Any]:
    try:
        async with asyncio.timeout(TIME_LIMIT):
            return list(await rows)
    except (TimeoutError, asyncpg.QueryCanceledError) as error:
        message = f"too expensive: narrow it; the search took longer than {TIME_LIMIT:g} s"
        raise InvalidQuery(message, faults=[Fault("/query", "query", "too_expensive", message)]) from error


def _data(rows: Sequence[Mapping[str, Any]], query: Query) -> list[msgspec.Raw]:
    if query.fields is None:
        return [msgspec.Raw(row["document"].encode()) for row in rows]
    kept = projection(query.fields)
    return [projected(row["document"], kept) for row in rows]


def _position(row: Mapping[str, Any], query: Query) -> Position:
    return Position(tuple(row[f"sort_{number}"] for number in range(len(query.sort))), row["id"])
