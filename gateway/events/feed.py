"""The feed of an organization: its events in the order in which they became visible, read by a cursor."""

import asyncio
import contextlib
from collections import defaultdict
from collections.abc import AsyncGenerator, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

import msgspec

from gateway.contract.events import EventType
from gateway.errors import CursorAhead, CursorExpired, FieldError, NotFound
from gateway.events.model import Event, EventFilter
from gateway.foundation.aio.turns import mapped
from gateway.foundation.aio.waiting import Waits
from gateway.foundation.db.page_bytes import PAGE_BYTES
from gateway.foundation.db.pool import Database
from gateway.foundation.db.where import OWNED, Where
from gateway.foundation.large_json import LARGE

#: seconds until a waiting reader queries again, in case a notification was lost
_POLL_INTERVAL = 5.0
#: events of one page of a stream
_PAGE = 200

#: gives ids to events that have none; returns whether some are left
NUMBER = "SELECT gateway_number_events($1)"
# One statement has one snapshot, so that an event that is pruned meanwhile is either read or known to be pruned. A row
# has the events of several records; the cursor may be between two of them.
# A page ends at a number of bytes too; `page_found` counts the rows without this limit.
_READ = f"""
    SELECT feed.last_id, feed.pruned_id, page.*
    FROM organizations
    LEFT JOIN event_feeds AS feed ON feed.organization_id = organizations.id
    LEFT JOIN LATERAL (
        SELECT * FROM (
            SELECT rows.*, count(*) OVER () AS page_found,
                   sum(octet_length(data)) OVER (ORDER BY id ROWS UNBOUNDED PRECEDING) - octet_length(data) AS before
            FROM (
                SELECT found.last_id - found.size + place AS id, type, at, connector_id, data, entity, record_id
                FROM (
                    SELECT * FROM events WHERE {{conditions}} ORDER BY events.last_id LIMIT {{limit}}
                ) AS found, unnest(COALESCE(record_ids, ARRAY[NULL]::text[])) WITH ORDINALITY
                    AS record (record_id, place)
                WHERE found.last_id - found.size + place > {{after}}
                ORDER BY 1 LIMIT {{limit}}
            ) AS rows
        ) AS measured WHERE before < {PAGE_BYTES}
    ) AS page ON true
    WHERE organizations.id = {{organization}} AND organizations.disabled_at IS NULL
    ORDER BY page.id
"""


class FeedPage(msgspec.Struct, frozen=True):
    """Some events of a feed in their order."""

    events: Sequence[Event]
    #: the `after` of the next page: all matching events up to it have been read
    next_after: int
    #: the id of the feed's newest event
    latest_id: int
    #: the time of which they are, if a replica was read
    as_of: datetime | None = None


class Feed:
    """Reads feeds, and waits for events on the process's one connection for notifications."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._waiting: defaultdict[str, set[asyncio.Event]] = defaultdict(set)
        self.is_shutting_down = False
        #: readers that wait for events
        self.waits = Waits()

    async def read(self, organization_id: UUID, filter_: EventFilter, after: int | None, limit: int) -> FeedPage:
        """The events after that id; without one, from the oldest that is stored.

        Raises CursorExpired, with the beginning of the feed, if events after `after` were pruned, CursorAhead for an
        id beyond the newest event, and NotFound if the organization is disabled.
        """
        query, arguments = _statement(organization_id, filter_, after or 0, limit)
        async with self._database.tenant(organization_id) as connection:
            while await connection.fetchval(NUMBER, organization_id):
                pass
        rows, as_of = await self._database.read(organization_id, lambda connection: connection.fetch(query, *arguments))
        if not rows:
            raise NotFound("there is no such organization")
        latest, pruned = rows[0]["last_id"] or 0, rows[0]["pruned_id"] or 0
        if after is not None:
            _require_readable(after, pruned, latest)
        events = await mapped(_event, (row for row in rows if row["id"] is not None), _is_large)
        is_whole = len(events) < limit and len(events) == (rows[0]["page_found"] or 0)
        return FeedPage(events, latest if is_whole else events[-1].id, latest, as_of)

    async def wait(
        self, organization_id: UUID, filter_: EventFilter, after: int | None, limit: int, seconds: float
    ) -> FeedPage:
        """The page of `read`, as soon as it has an event, or after `seconds`."""
        deadline = asyncio.get_running_loop().time() + seconds
        added = asyncio.Event()
        waiting = self._waiting[str(organization_id)]
        waiting.add(added)
        try:
            while True:
                page = await self.read(organization_id, filter_, after, limit)
                left = deadline - asyncio.get_running_loop().time()
                if page.events or left <= 0 or self.is_shutting_down:
                    return page
                after = page.next_after
                with self.waits.one(), contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(min(left, _POLL_INTERVAL)):
                        await added.wait()
                added.clear()
        finally:
            waiting.discard(added)
            if not waiting:
                self._waiting.pop(str(organization_id), None)

    async def follow(
        self, organization_id: UUID, filter_: EventFilter, after: int | None, seconds: float
    ) -> AsyncGenerator[FeedPage, None]:
        """Pages until the process stops, an empty one after `seconds` without events; raises the errors of `read`."""
        while True:
            page = await self.wait(organization_id, filter_, after, _PAGE, seconds)
            yield page
            after = page.next_after
            if self.is_shutting_down:
                return

    def on_notify(self, organization_id: str) -> None:
        """Events were added to an organization's feed."""
        for added in self._waiting.get(organization_id, ()):
            added.set()

    def wake_all(self) -> None:
        """Make every waiting reader query again, because notifications may have been missed."""
        for organization_id in self._waiting:
            self.on_notify(organization_id)

    def stop_waiting(self) -> None:
        """Make waiting readers return at once, because the process stops."""
        self.is_shutting_down = True
        self.wake_all()


def _statement(organization_id: UUID, filter_: EventFilter, after: int, limit: int) -> tuple[str, Sequence[object]]:
    where = Where()
    where.add("organization_id = {}", organization_id)
    where.add("last_id > {}", after)
    where.require(OWNED, filter_.person_id)
    where.add("type = ANY ({}::text[])", filter_.types)
    where.add("events.connector_id = {}", filter_.connector_id)
    where.add("events.entity = {}", filter_.entity)
    where.add("workspace_name = ANY ({}::text[])", filter_.workspaces)
    where.add("callback = {}", filter_.callback)
    query = _READ.format(conditions=where.text, limit=where.argument(limit), after="$2", organization="$1")
    return query, where.arguments


def _require_readable(after: int, pruned: int, latest: int) -> None:
    if after < pruned:
        raise CursorExpired(
            f"events up to {pruned} are deleted; the feed begins after that: send after={pruned}, and read "
            "again what you need from before",
            extra={"begins_after": pruned},
        )
    if after > latest:
        message = f"after is {after}, and the feed's newest event is {latest}; send the id of an event that you read"
        ahead = CursorAhead(faults=[FieldError("/after", "after", "maximum", message)])
        ahead.continues_after = latest
        raise ahead


def _is_large(row: Any) -> bool:
    return len(row["data"]) > LARGE


def _event(row: Any) -> Event:
    data = msgspec.json.decode(row["data"])
    if row["record_id"] is not None:
        data = {"entity": row["entity"], "record_id": row["record_id"], **data}
    return Event(id=row["id"], type=EventType(row["type"]), at=row["at"], data=data, connector_id=row["connector_id"])
