"""The part of a feed that a caller may see: clients limited to workspaces see only the events of these."""

from collections.abc import AsyncGenerator
from contextlib import aclosing

from gateway.access.identity.model import Caller
from gateway.access.identity.store import IdentityStore
from gateway.contract.events import EventPage, EventSelection
from gateway.contract.members import as_of_member
from gateway.events.feed import Feed, FeedPage
from gateway.events.model import EventFilter, event_types


class EventAccess:
    """Events of the caller's organization."""

    def __init__(self, feed: Feed, identity: IdentityStore) -> None:
        self._feed = feed
        self._identity = identity

    async def page(
        self, caller: Caller, selection: EventSelection, after: int | None, limit: int, seconds: float = 0
    ) -> EventPage:
        """The events after that id, as soon as there is one, or after `seconds`.

        Raises InvalidParams for an unknown type, the errors of `Feed.read`, and Unauthorized if the caller's token was
        revoked meanwhile.
        """
        found = await self._feed.wait(caller.organization_id, _filter_of(caller, selection), after, limit, seconds)
        if seconds:
            await self._identity.require_unrevoked(caller.client)
        return _view(found)

    async def follow(
        self, caller: Caller, selection: EventSelection, after: int | None, seconds: float
    ) -> AsyncGenerator[EventPage, None]:
        """Pages until the process stops or the caller's workspaces become fewer, an empty one after `seconds` without
        events; raises the errors of `page`.
        """
        pages = self._feed.follow(caller.organization_id, _filter_of(caller, selection), after, seconds)
        async with aclosing(pages):
            async for found in pages:
                if not await self._identity.sees_as_before(caller):
                    return
                yield _view(found)


def _filter_of(caller: Caller, selection: EventSelection) -> EventFilter:
    types = None if selection.types is None else event_types(selection.types)
    return EventFilter(
        types=types,
        connector_id=selection.connector_id,
        entity=selection.entity,
        workspaces=caller.client.workspaces,
        person_id=caller.person_id,
    )


def _view(found: FeedPage) -> EventPage:
    events = [event.view for event in found.events]
    return EventPage(events, str(found.next_after), found.latest_id, as_of_member(found.as_of))
