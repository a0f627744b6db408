"""The part of a feed that a caller may see: clients limited to workspaces see only the events of these."""

from collections.abc import AsyncGenerator
from contextlib import aclosing

from gateway.access.identity.model import Caller
from gateway.access.identity.standing import Standing
from gateway.access.identity.store import IdentityStore
from gateway.contract.events import EventPage, EventSelection
from gateway.contract.members import as_of_member
from gateway.errors import Unauthorized
from gateway.events.feed import Feed, FeedPage
from gateway.events.model import EventFilter, event_types


class EventAccess:
    """Events of the caller's organization."""

    def __init__(self, feed: Feed, identity: IdentityStore, standing: Standing) -> None:
        self._feed = feed
        self._identity = identity
        self._standing = standing

    async def page(
        self, caller: Caller, selection: EventSelection, after: int | None, limit: int, seconds: float = 0
    ) -> EventPage:
        """The events after that id, as soon as there is one, or after `seconds`.

        Raises InvalidParams for an unknown type, the errors of `Feed.read`, and while it waits those of `Standing`.
        """
        filter_ = _filter_of(caller, selection)
        if not seconds:
            return _view(await self._feed.wait(caller.organization_id, filter_, after, limit, 0))
        async with self._standing.held(caller.client):
            found = await self._feed.wait(caller.organization_id, filter_, after, limit, seconds)
        await self._standing.require(caller.client)
        return _view(found)

    async def follow(
        self, caller: Caller, selection: EventSelection, after: int | None, seconds: float
    ) -> AsyncGenerator[EventPage, None]:
        """Pages until the process stops or the caller may see fewer workspaces, an empty one after `seconds` without
        events. Raises the errors of `page`; Unauthorized has the reason.
        """
        pages = self._feed.follow(caller.organization_id, _filter_of(caller, selection), after, seconds)
        async with aclosing(pages):
            try:
                while True:
                    async with self._standing.held(caller.client):
                        found = await anext(pages, None)
                    if found is None:
                        return
                    await self._standing.require(caller.client)
                    yield _view(found)
            except Unauthorized as lost:
                lost.reason = await self._identity.loss(caller) or lost.reason
                if not lost.reason:
                    return
                raise


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
