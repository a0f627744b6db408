"""The feed of the organization's events: pages, long polls and Server-Sent Events."""

import asyncio
from collections.abc import AsyncGenerator
from typing import Annotated, ClassVar
from uuid import UUID

import msgspec
from aiohttp import web
from pydantic import BeforeValidator, Field

from gateway.contract.events import EventPage, EventView
from gateway.errors import CursorExpired, NotFound, Unavailable
from gateway.events.model import Event, EventFilter, event_types
from gateway.http.bodies import MAX_WAIT, QueryString, read_query
from gateway.http.keys import CALLER, SERVICES
from gateway.http.server_sent_events import KEEP_ALIVE, ServerSentEvent, last_event_id, stream_events

#: seconds between two attempts to read the feed while PostgreSQL is away
_RETRY_INTERVAL = 0.5
_MAX_ID = 2**62


def _split(value: object) -> object:
    return value.split(",") if isinstance(value, str) else value


class EventStreamQuery(QueryString):
    """Which events."""

    EXAMPLE: ClassVar = {"types": "job.*,record.updated"}

    after: int | None = Field(
        None, ge=0, le=_MAX_ID, description="only events after this id; from the oldest that is kept when left out"
    )
    types: Annotated[list[str] | None, BeforeValidator(_split)] = Field(
        None,
        max_length=50,
        description="only events of these types or groups (`job.*`), separated by commas",
    )
    connector_id: UUID | None = Field(None, description="only events of this connector")


class EventQuery(EventStreamQuery):
    """Which events, how many, and how long to wait for the first."""

    EXAMPLE: ClassVar = {"after": 41, "wait": 30}

    limit: int = Field(100, ge=1, le=1000, description="how many a page holds")
    wait: int = Field(0, ge=0, le=MAX_WAIT, description="seconds to wait for at most if there is no event yet")


def event_view(event: Event) -> EventView:
    """The event as callers see it."""
    connector_id = None if event.connector_id is None else str(event.connector_id)
    return EventView(event.id, event.type, event.at, event.data, connector_id)


async def list_events(request: web.Request) -> EventPage:
    """The events after `after`, in their order. An event is there once its change is true, and only then: a job's end,
    a connector's state, a record's write into the synchronized copy. Call again with `next_cursor` as `after`. Events
    are kept for a week by default; 410 `cursor_expired` says where the feed begins.
    """
    query, caller, feed = read_query(request, EventQuery), request[CALLER], request.app[SERVICES].feed
    page = await feed.wait(
        caller.organization_id, _filter_of(request, query), query.after, query.limit, float(query.wait)
    )
    return EventPage([event_view(event) for event in page.events], str(page.next_after), page.latest_id)


async def stream_feed(request: web.Request) -> web.StreamResponse:
    """The same events as Server-Sent Events, each with its type and its id. With `Last-Event-ID` the stream continues
    after that event, without gap or repeat.
    """
    query, caller = read_query(request, EventStreamQuery), request[CALLER]
    last_id, filter_ = last_event_id(request), _filter_of(request, query)
    after = query.after if last_id is None else last_id
    # A cursor that is refused is an error response, so it is judged before the stream begins.
    await request.app[SERVICES].feed.read(caller.organization_id, filter_, after, 1)
    return await stream_events(request, _events(request, caller.organization_id, filter_, after))


def _filter_of(request: web.Request, query: EventStreamQuery) -> EventFilter:
    workspaces = request[CALLER].client.workspaces
    return EventFilter(
        None if query.types is None else event_types(query.types),
        query.connector_id,
        workspaces=None if workspaces is None else sorted(workspaces),
    )


async def _events(
    request: web.Request, organization_id: UUID, filter_: EventFilter, after: int | None
) -> AsyncGenerator[ServerSentEvent, None]:
    """Events until the process stops, the organization is disabled, or the reader falls behind what is kept."""
    feed = request.app[SERVICES].feed
    while not feed.shutting_down:
        try:
            async for page in feed.follow(organization_id, filter_, after, KEEP_ALIVE):
                for event in page.events:
                    yield ServerSentEvent(event.id, event.type, msgspec.json.encode(event_view(event)).decode())
                after = page.next_after
        except (NotFound, CursorExpired):
            return
        except Unavailable:
            await asyncio.sleep(_RETRY_INTERVAL)
