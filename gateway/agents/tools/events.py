"""The organization's events for clients that poll or stream them, or subscribe a receiver to them."""

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Protocol
from uuid import UUID

import jsonschema_rs

from gateway.agents.mcp.context import Context
from gateway.agents.mcp.features import EventSubscription, WebhookDelivery
from gateway.agents.mcp.messages import (
    CALLBACK_ENDPOINT,
    FORBIDDEN,
    NOT_FOUND,
    RESOURCE_EXHAUSTED,
    RpcError,
    invalid_params,
    notification,
)
from gateway.agents.mcp.results import Result
from gateway.contract.events import EventPage, EventSelection, EventType, EventView
from gateway.errors import (
    Conflict,
    CursorAhead,
    CursorExpired,
    InsufficientScope,
    NotFound,
    RateLimited,
    Unauthorized,
    Unavailable,
)
from gateway.events.subscription import (
    MAX_SUBSCRIPTIONS,
    NewSubscription,
    ReceiverUnverified,
    SubscriptionState,
    granted_lifetime,
    occurrence,
)
from gateway.foundation.aio.clock import CLOCK
from gateway.kinds.patterns import OPTIONS
from gateway.kinds.schema_errors import first_errors

#: events of a poll: the default and the maximum of `maxEvents`
_PAGE, _MAX_PAGE = 100, 1000
#: milliseconds until a client should poll again
_NEXT_POLL = 5000
#: seconds between two heartbeats of a stream without events
_HEARTBEAT = 25.0
#: seconds until the next attempt while PostgreSQL is unavailable
_RETRY_INTERVAL = 1.0
#: milliseconds of the longest `maxAgeMs`, 31 years
_MAX_AGE = 10**12
#: characters of a fault, which may repeat what the client sent
_MAX_FAULT = 300

_TEXT = {"type": "string"}
_NULLABLE = {"type": ["string", "null"]}
#: arguments are stored, so each is bounded
_CONNECTOR = {"connector_id": {"type": "string", "maxLength": 36, "description": "Only events of this connector."}}
_ENTITY = {
    "entity": {
        "type": "string",
        "pattern": "^[a-z][a-z0-9_]{0,199}$",
        "description": "Only records of this entity, such as tickets.",
    }
}


@dataclass(frozen=True)
class EventGroup:
    """The arguments and the data that event types with one prefix share."""

    arguments: Mapping[str, Any]
    data: Mapping[str, Any]


_JOB = EventGroup(
    _CONNECTOR,
    {
        "job_id": _TEXT,
        "status": _TEXT,
        "entity": _NULLABLE,
        "action": _NULLABLE,
        "workspace_name": _NULLABLE,
        "labels": {"type": ["object", "null"]},
        "connector_id": _TEXT,
    },
)
_STATE = {"name": _TEXT, "kind": _TEXT, "workspace_name": _NULLABLE, "status": _TEXT, "status_reason": _NULLABLE}
_GROUPS: Mapping[str, EventGroup] = {
    "job": _JOB,
    "connector": EventGroup(_CONNECTOR, {"connector_id": _TEXT, **_STATE}),
    "record": EventGroup({**_CONNECTOR, **_ENTITY}, {"connector_id": _TEXT, "entity": _TEXT, "record_id": _TEXT}),
    "schedule": EventGroup(_CONNECTOR, {"schedule_id": _TEXT, "name": _TEXT, "slot": _TEXT, "reason": _TEXT}),
    "approval": EventGroup(_CONNECTOR, {"approval_id": _TEXT, "job_id": _TEXT, "status": _TEXT, "reason": _TEXT}),
    "webhook": EventGroup({}, {"webhook_id": _TEXT, "url": _TEXT, "reason": _TEXT}),
}
_DESCRIPTIONS: Mapping[EventType, str] = {
    EventType.JOB_SUCCEEDED: "A job of the organization succeeded.",
    EventType.JOB_FAILED: "A job of the organization failed.",
    EventType.JOB_CANCELED: "A job of the organization was canceled.",
    EventType.JOB_UNKNOWN: "A job ended although the response to a write was lost; the write may have happened.",
    EventType.CONNECTOR_CREATED: "An application was connected.",
    EventType.CONNECTOR_NEEDS_REAUTH: "An application refuses a connector's credentials; it must be authorized again.",
    EventType.CONNECTOR_DELETED: "The deletion of a connector began.",
    EventType.RECORD_CREATED: "A record is new in the synchronized copy of an application.",
    EventType.RECORD_UPDATED: "A record of the synchronized copy of an application changed.",
    EventType.RECORD_DELETED: "A record of the synchronized copy of an application was deleted.",
    EventType.SCHEDULE_MISSED: "A slot of a schedule was not run.",
    EventType.APPROVAL_REQUESTED: "A call waits until a person approves it.",
    EventType.APPROVAL_APPROVED: "A call was approved; its job goes on.",
    EventType.APPROVAL_DENIED: "A call was denied; its job was canceled.",
    EventType.APPROVAL_EXPIRED: "Nobody approved a call in time; its job was canceled.",
    EventType.APPROVAL_SUPERSEDED: "What a call would do changed, or its job ended, before its approval was used.",
    EventType.WEBHOOK_DISABLED: "The gateway stopped delivering to a webhook.",
}


class EventsBackend(Protocol):
    """The feed of the caller's organization, limited to the events that the caller may see."""

    async def require_connector(self, caller: Any, connector_id: UUID) -> None:
        """Raise NotFound unless the caller may see the connector."""

    async def read(self, caller: Any, selection: EventSelection, after: int | None, limit: int) -> EventPage:
        """A page of the feed; raises CursorExpired, CursorAhead, NotFound and InsufficientScope."""

    def follow(
        self, caller: Any, selection: EventSelection, after: int, seconds: float
    ) -> AsyncGenerator[EventPage, None]:
        """Pages as events occur; an empty page after `seconds` without events."""

    async def subscribe(self, caller: Any, new: NewSubscription) -> SubscriptionState:
        """Subscribe a receiver, or refresh its subscription; raises the errors of `SubscriptionService.subscribe`."""

    async def unsubscribe(self, caller: Any, type_: str, arguments: Mapping[str, str], url: str) -> None:
        """End a subscription; raises InsufficientScope and NotFound."""


@dataclass(frozen=True)
class _CheckedSubscription:
    """A checked subscription."""

    selection: EventSelection
    #: None for new events only
    after: int | None
    #: older events are left out
    floor: datetime | None

    def is_too_old(self, event: EventView) -> bool:
        return self.floor is not None and event.at < self.floor


class FeedEvents:
    """Serves the event types of the organization's feed."""

    def __init__(self, backend: EventsBackend) -> None:
        self._backend = backend

    async def listed(self, context: Context) -> Sequence[Mapping[str, Any]]:
        """All event types, in a fixed order."""
        return [_described(each) for each in EventType]

    async def poll(self, context: Context, subscription: EventSubscription, max_events: int | None) -> Result:
        """The events after the cursor; raises RpcError."""
        checked = _checked(subscription)
        if checked.after is None:  # a cursor may still read the last events of a deleted connector
            await self._require_connector(context, checked)
        limit = 1 if checked.after is None else min(max_events or _PAGE, _MAX_PAGE)
        page, begin = await self._page(context, checked, limit)
        if checked.after is None:
            return _polled([], page.latest_id, is_truncated=False, has_more=False)
        events = [event for event in page.data if not checked.is_too_old(event)]
        is_truncated = begin != checked.after or len(events) < len(page.data)
        after = int(page.next_cursor)
        has_more = after < page.latest_id
        return _polled(events, after, is_truncated=is_truncated, has_more=has_more)

    async def stream(self, context: Context, subscription: EventSubscription) -> AsyncGenerator[dict[str, Any], None]:
        """Notifications of events until the process stops; raises RpcError before the first."""
        checked = _checked(subscription)
        await self._require_connector(context, checked)
        page, begin = await self._page(context, checked, 1)
        after, is_truncated = page.latest_id, False
        if checked.after is not None:
            after, is_truncated = begin, begin != checked.after or any(map(checked.is_too_old, page.data))
        yield _active(after, is_truncated=is_truncated)
        while True:
            try:
                async with aclosing(
                    self._backend.follow(context.caller, checked.selection, after, _HEARTBEAT)
                ) as pages:
                    async for page in pages:
                        for event in page.data:
                            if not checked.is_too_old(event):
                                cursor = {"cursor": str(event.id)}
                                yield notification("notifications/events/event", occurrence(event) | cursor)
                        after = int(page.next_cursor)
                        if not page.data:
                            yield notification("notifications/events/heartbeat", {"cursor": str(after)})
                return
            except (CursorExpired, CursorAhead) as unreadable:
                after = unreadable.continues_after
                yield _active(after, is_truncated=True)
            except (NotFound, Unauthorized) as ended:
                reason = ended.reason if isinstance(ended, Unauthorized) else "the organization was disabled"
                error = RpcError(FORBIDDEN, "Forbidden", {"reason": reason})
                yield notification("notifications/events/terminated", {"error": error.as_document()})
                return
            except Unavailable as error:
                document = {"code": -32603, "message": error.title, "data": {"reason": error.detail}}
                yield notification("notifications/events/error", {"error": document})
                await asyncio.sleep(_RETRY_INTERVAL)

    async def subscribe(self, context: Context, subscription: EventSubscription, delivery: WebhookDelivery) -> Result:
        """Subscribe a receiver to an event type, or refresh its subscription; raises RpcError."""
        checked, age = _checked(subscription), subscription.max_age_ms
        [type_] = checked.selection.types or ()
        new = NewSubscription(
            type=EventType(type_),
            arguments=dict(subscription.arguments),
            connector_id=checked.selection.connector_id,
            entity=checked.selection.entity,
            url=delivery.url,
            secret=delivery.secret,
            after=checked.after,
            max_age=None if age is None else min(age, _MAX_AGE) / 1000,
            lifetime=granted_lifetime(delivery.ttl_ms),
        )
        await self._require_connector(context, checked)
        try:
            return _subscribed(await self._backend.subscribe(context.caller, new))
        except InsufficientScope as error:
            raise RpcError(FORBIDDEN, "Forbidden", {"reason": error.detail}) from error
        except ReceiverUnverified as error:
            raise RpcError(CALLBACK_ENDPOINT, "CallbackEndpointError", {"reason": error.reason}) from error
        except Conflict as error:
            limit = {"limit": "subscriptions", "max": MAX_SUBSCRIPTIONS}
            raise RpcError(RESOURCE_EXHAUSTED, error.detail, limit) from error
        except RateLimited as error:
            limit = {"limit": "verifications", "retryAfterMs": (error.retry_after or 1) * 1000}
            raise RpcError(RESOURCE_EXHAUSTED, error.detail, limit) from error

    async def unsubscribe(self, context: Context, subscription: EventSubscription, url: str) -> None:
        """End a subscription by webhook; raises RpcError."""
        checked = _checked(subscription)
        [type_] = checked.selection.types or ()
        try:
            await self._backend.unsubscribe(context.caller, type_, dict(subscription.arguments), url)
        except InsufficientScope as error:
            raise RpcError(FORBIDDEN, "Forbidden", {"reason": error.detail}) from error
        except NotFound as error:
            raise RpcError(NOT_FOUND, "NotFound", {"kind": "subscription"}) from error

    async def _require_connector(self, context: Context, checked: _CheckedSubscription) -> None:
        """Raise RpcError unless the caller may see the connector whose events it asks for."""
        connector_id = checked.selection.connector_id
        try:
            if connector_id is not None:
                await self._backend.require_connector(context.caller, connector_id)
        except InsufficientScope as error:
            raise RpcError(FORBIDDEN, "Forbidden", {"reason": error.detail}) from error
        except NotFound as error:
            raise RpcError(NOT_FOUND, "NotFound", {"kind": "connector"}) from error

    async def _page(self, context: Context, checked: _CheckedSubscription, limit: int) -> tuple[EventPage, int]:
        """A page of events, and the id after which it begins.

        It is not the cursor's if events after the cursor were deleted, or if the cursor is beyond the newest event.
        """
        begin = checked.after
        try:
            try:
                page = await self._backend.read(context.caller, checked.selection, begin, limit)
            except (CursorExpired, CursorAhead) as unreadable:
                begin = unreadable.continues_after
                page = await self._backend.read(context.caller, checked.selection, begin, limit)
        except InsufficientScope as error:
            raise RpcError(FORBIDDEN, "Forbidden", {"reason": error.detail}) from error
        return page, begin or 0


def _described(type_: EventType) -> dict[str, Any]:
    group = _GROUPS[type_.partition(".")[0]]
    return {
        "name": type_.value,
        "description": _DESCRIPTIONS[type_],
        "delivery": ["poll", "push", "webhook"],
        "inputSchema": _schema(group.arguments) | {"additionalProperties": False},
        "payloadSchema": _schema(group.data),
    }


def _schema(properties: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": dict(properties)}


def _checked(subscription: EventSubscription) -> _CheckedSubscription:
    """Check a subscription; raises RpcError."""
    if subscription.name not in set(EventType):
        raise RpcError(NOT_FOUND, "NotFound", {"kind": "event"})
    type_, arguments = EventType(subscription.name), subscription.arguments
    validator = jsonschema_rs.Draft202012Validator(_described(type_)["inputSchema"], pattern_options=OPTIONS)
    faults = [error.message[:_MAX_FAULT] for error in first_errors(validator, dict(arguments))]
    if faults:
        raise invalid_params("; ".join(faults))
    floor = None
    if subscription.max_age_ms is not None:
        floor = CLOCK.now() - timedelta(milliseconds=min(subscription.max_age_ms, _MAX_AGE))
    connector_id = arguments.get("connector_id")
    selection = EventSelection([type_], None if connector_id is None else _uuid(connector_id), arguments.get("entity"))
    return _CheckedSubscription(selection, None if subscription.cursor is None else _id(subscription.cursor), floor)


def _uuid(text: str) -> UUID:
    try:
        return UUID(text)
    except ValueError:
        raise invalid_params("connector_id must be a UUID") from None


def _id(cursor: str) -> int:
    if not (cursor.isascii() and cursor.isdecimal() and len(cursor) < 19):
        raise invalid_params("cursor is invalid; null begins with new events")
    return int(cursor)


def _polled(events: Sequence[EventView], after: int, *, is_truncated: bool, has_more: bool) -> Result:
    return {
        "events": [occurrence(event) for event in events],
        "cursor": str(after),
        "truncated": is_truncated,
        "hasMore": has_more,
        "nextPollMs": _NEXT_POLL,
    }


def _subscribed(state: SubscriptionState) -> Result:
    answer: dict[str, Any] = {
        "id": state.id,
        "refreshBefore": state.expires_at,
        "cursor": str(state.cursor),
        "truncated": state.is_truncated,
    }
    deliveries = state.deliveries
    if deliveries is not None:
        status = {
            "active": deliveries.is_active,
            "lastDeliveryAt": deliveries.delivered_at,
            "lastError": deliveries.failure,
        }
        failing = {} if deliveries.failing_since is None else {"failedSince": deliveries.failing_since}
        answer["deliveryStatus"] = status | failing
    return answer


def _active(after: int, *, is_truncated: bool) -> dict[str, Any]:
    return notification("notifications/events/active", {"cursor": str(after), "truncated": is_truncated})
