"""The feed of the organization's events: pages, long polls and Server-Sent Events."""

import asyncio
from collections.abc import AsyncGenerator
from typing import Annotated, ClassVar
from uuid import UUID

from aiohttp import web
from pydantic import BeforeValidator, Field

from gateway.access.identity.model import Scope
from gateway.contract.events import EventPage, EventSelection
from gateway.errors import CursorExpired, NotFound, Unauthorized, Unavailable
from gateway.foundation.large_json import encoded
from gateway.web.admission.load_shedding import LIMITS
from gateway.web.bodies import MAX_WAIT, QueryString, read_query, split_at_commas
from gateway.web.keys import CALLER, SERVICES
from gateway.web.route import Route
from gateway.web.server_sent_events import KEEP_ALIVE, ServerSentEvent, last_event_id, stream_events

#: seconds between attempts to read the feed while PostgreSQL is unavailable
_RETRY_INTERVAL = 0.5
_MAX_ID = 2**62


class EventStreamQuery(QueryString):
    """The filter of events."""

    EXAMPLE: ClassVar = {"types": "job.*,record.updated"}

    after: int | None = Field(
        None, ge=0, le=_MAX_ID, description="only events after this id; from the oldest stored event when left out"
    )
    types: Annotated[list[str] | None, BeforeValidator(split_at_commas)] = Field(
        None,
        max_length=50,
        description="only events of these types or groups (`job.*`), separated by commas",
    )
    connector_id: UUID | None = Field(None, description="only events of this connector")


class EventQuery(EventStreamQuery):
    """The filter and page of events, and the time to wait for the first."""

    EXAMPLE: ClassVar = {"after": 41, "wait": 30}

    limit: int = Field(100, ge=1, le=1000, description="maximum events of a page")
    wait: int = Field(0, ge=0, le=MAX_WAIT, description="maximum seconds to wait if there is no event yet")


async def list_events(request: web.Request) -> web.Response:
    """The events after `after`, in their order. An event is written in the same transaction as its change: a job's end,
    a connector's state, a record's write into the synchronized copy. Call again with `next_cursor` as `after`. Events
    are kept for a week by default; 410 `cursor_expired` says where the feed begins.
    """
    query = read_query(request, EventQuery)
    page = await request.app[SERVICES].events.access.page(
        request[CALLER], _selection_of(query), query.after, query.limit, float(query.wait)
    )
    return web.Response(body=await encoded(page), content_type="application/json")


async def stream_feed(request: web.Request) -> web.StreamResponse:
    """The same events as Server-Sent Events, each with its type and its id. With `Last-Event-ID` the stream continues
    after that event, without gap or repeat.
    """
    query = read_query(request, EventStreamQuery)
    last_id, selection = last_event_id(request), _selection_of(query)
    after = query.after if last_id is None else last_id
    # Check the cursor before the stream begins, because a refusal must be an error response.
    await request.app[SERVICES].events.access.page(request[CALLER], selection, after, 1)
    with request.app[LIMITS].one_stream(request, request[CALLER].organization_id):
        return await stream_events(request, _events(request, selection, after))


def _selection_of(query: EventStreamQuery) -> EventSelection:
    return EventSelection(query.types, query.connector_id)


async def _events(
    request: web.Request, selection: EventSelection, after: int | None
) -> AsyncGenerator[ServerSentEvent, None]:
    """Events until the process stops, the organization is disabled, the token revoked, the next event deleted, or the
    client may see fewer workspaces.
    """
    services = request.app[SERVICES]
    while not services.events.feed.is_shutting_down:
        try:
            async for page in services.events.access.follow(request[CALLER], selection, after, KEEP_ALIVE):
                for event in page.data:
                    yield ServerSentEvent(event.id, event.type, (await encoded(event)).decode())
                after = int(page.next_cursor)
            return
        except (NotFound, CursorExpired, Unauthorized):
            return
        except Unavailable:
            await asyncio.sleep(_RETRY_INTERVAL)


#: the routes of these handlers, in the order in which they are tried
ROUTES: tuple[Route, ...] = (
    Route(
        "GET",
        "/api/v1/events",
        list_events,
        "Read the feed of events, or wait for the next",
        "Events",
        query=EventQuery,
        response=EventPage,
        errors=(410,),
        scope=Scope.READ,
        command="gateway events --follow",
        python="async for event in gateway.events():\n    print(event.id, event.type, event.data)",
    ),
    Route(
        "GET",
        "/api/v1/events/stream",
        stream_feed,
        "Follow the feed by Server-Sent Events",
        "Events",
        query=EventStreamQuery,
        answers={200: "A stream of events"},
        errors=(410,),
        media={200: ("text/event-stream",)},
        reads=("Last-Event-ID",),
        sends={200: ("Cache-Control", "X-Accel-Buffering")},
        scope=Scope.READ,
        command="gateway events --follow",
    ),
)
