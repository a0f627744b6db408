"""Subscriptions by webhook of the Model Context Protocol (SEP-3415): ids, lifetimes, positions and bodies. Pure."""

import base64
import binascii
import hashlib
import math
import secrets
from collections import defaultdict, deque
from collections.abc import Hashable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

import msgspec

from gateway.contract.events import DeliveryStatus, EventType, EventView
from gateway.errors import FieldError
from gateway.events.webhook import Delivery

#: maximum subscriptions of an organization
MAX_SUBSCRIPTIONS = 10_000
#: reasons for which a subscription ends although its client may still read events
CONNECTOR_DELETED, RECEIVER_FAILED = "the connector was deleted", "no delivery has succeeded for too long"
#: the header by which a receiver selects the secret
SUBSCRIPTION_HEADER = "X-MCP-Subscription-Id"
#: challenges that one process sends to one host in a minute; for one organization half of what the others leave
CHALLENGES = 60
#: hosts whose challenges are counted; beyond it all counts are dropped, which only forgives those of the last minute
_MAX_HOSTS = 1000
#: seconds of the shortest lifetime, of the longest, and of one that the client leaves to the gateway
_MIN_LIFETIME, _MAX_LIFETIME, _DEFAULT_LIFETIME = 60.0, 30 * 86400.0, 86400.0
#: bytes of a signing secret (Standard Webhooks)
_SECRET_BYTES = range(24, 65)
_SECRET_PREFIX = "whsec_"


class NewSubscription(msgspec.Struct, frozen=True, kw_only=True):
    """A request to subscribe, or to refresh a subscription."""

    type: EventType
    #: as the client sent them; they are part of the subscription's identity
    arguments: Mapping[str, str]
    connector_id: UUID | None
    entity: str | None
    url: str
    secret: str
    #: None for new events only
    after: int | None
    #: seconds; older events are left out
    max_age: float | None
    #: seconds; None for no expiry
    lifetime: float | None


class DeliveryState(msgspec.Struct, frozen=True, kw_only=True):
    """The deliveries of a subscription before it was refreshed."""

    #: whether it was not suspended
    is_active: bool
    delivered_at: datetime | None
    failure: str | None
    failing_since: datetime | None


class SubscriptionState(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to a request to subscribe."""

    id: str
    expires_at: datetime | None
    #: events up to it are acknowledged or given up
    cursor: int
    is_truncated: bool
    #: None for a new subscription
    deliveries: DeliveryState | None


class ReceiverUnverified(Exception):
    """The receiver cannot be reached, or did not return the challenge; `reason` is a category of failures."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(reason)


class ChallengePace:
    """Counts the challenges to each host, so that a subscriber cannot flood a stranger's host with them.

    Nor does one organization keep the others from a host that they share.
    """

    def __init__(self) -> None:
        #: host → when and for whom each was sent
        self._sent: defaultdict[str, deque[tuple[float, Hashable]]] = defaultdict(deque)

    def wait(self, host: str, holder: Hashable, now: float) -> int:
        """Count a challenge at `now` in seconds; returns seconds to wait instead if the holder has sent too many."""
        if len(self._sent) >= _MAX_HOSTS and host not in self._sent:
            self._sent.clear()
        sent = self._sent[host]
        while sent and sent[0][0] <= now - 60:
            sent.popleft()
        own = [at for at, each in sent if each == holder]
        if len(own) >= max(1, (CHALLENGES - len(sent) + len(own)) // 2):
            return math.ceil(own[0] + 60 - now)
        if len(sent) >= CHALLENGES:
            return math.ceil(sent[0][0] + 60 - now)
        sent.append((now, holder))
        return 0


def subscription_id(organization_id: UUID, client_id: UUID, url: str, type_: str, arguments: Mapping[str, str]) -> str:
    """The id of a subscription: the same for the same client, URL, event type and arguments."""
    key = [str(organization_id), str(client_id), url, type_, dict(arguments)]
    return f"sub_{hashlib.sha256(msgspec.json.encode(key, order='sorted')).hexdigest()[:32]}"


def granted_lifetime(milliseconds: int | msgspec.UnsetType | None) -> float | None:
    """The seconds of a lifetime that a client suggests; None for no expiry."""
    if milliseconds is msgspec.UNSET:
        return _DEFAULT_LIFETIME
    return None if milliseconds is None else min(max(milliseconds / 1000, _MIN_LIFETIME), _MAX_LIFETIME)


def secret_fault(secret: str) -> FieldError | None:
    """The fault of a signing secret: it must be `whsec_` and base64 of 24 to 64 bytes."""
    try:
        size = len(base64.b64decode(secret.removeprefix(_SECRET_PREFIX), validate=True))
    except (ValueError, binascii.Error):
        size = 0
    if secret.startswith(_SECRET_PREFIX) and size in _SECRET_BYTES:
        return None
    message = f"delivery.secret must be {_SECRET_PREFIX} followed by the base64 encoding of 24 to 64 random bytes"
    return FieldError("/delivery/secret", "delivery.secret", "format", message)


def delivery_state(is_active: bool, failing_since: datetime | None, last: Sequence[Delivery]) -> DeliveryState:
    """The state of deliveries, from the last ones that were attempted."""
    delivered = [each.attempted_at for each in last if each.status is DeliveryStatus.SUCCEEDED and each.attempted_at]
    newest = max(last, key=lambda each: each.attempted_at or datetime.min, default=None)
    return DeliveryState(
        is_active=is_active,
        delivered_at=max(delivered, default=None),
        failure=None if newest is None else newest.failure,
        failing_since=failing_since,
    )


def safe_cursor(event_id: int, unfinished: Iterable[int]) -> int:
    """The cursor of a delivery: each event up to it is this one, acknowledged, or given up."""
    earliest = min((each for each in unfinished if each < event_id), default=None)
    return event_id if earliest is None else earliest - 1


def occurrence(event: EventView) -> dict[str, Any]:
    """An event in the form of the protocol, without its cursor."""
    connector = {} if event.connector_id is None else {"connector_id": event.connector_id}
    return {"eventId": str(event.id), "name": event.type, "timestamp": event.at, "data": {**event.data, **connector}}


def end_of(reason: str, failure: str | None) -> dict[str, Any]:
    """The error that tells the receiver why its subscription ended; `failure` is the category of the last one."""
    if reason == CONNECTOR_DELETED:
        return {"code": -32023, "message": "NotFound", "data": {"kind": "connector", "detail": reason}}
    if reason == RECEIVER_FAILED:
        data = {"reason": failure or "connection_refused", "detail": reason}
        return {"code": -32027, "message": "CallbackEndpointError", "data": data}
    return {"code": -32024, "message": "Forbidden", "data": {"reason": reason}}


def control_message(type_: str, **members: Any) -> tuple[str, bytes]:
    """The id and the body of a message that is no event: `verification`, `gap` or `terminated`."""
    return f"msg_{type_}_{secrets.token_hex(16)}", msgspec.json.encode({"type": type_, **members})
