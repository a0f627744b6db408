"""Subscribes agents' hosts to the feed by webhook (SEP-3415): refreshes, verifies receivers, unsubscribes."""

import hmac
import secrets
import time
from collections.abc import Iterable, Mapping
from uuid import UUID

import msgspec
from yarl import URL

from gateway.access.audit.log import Audit
from gateway.access.identity.model import Caller, Scope
from gateway.contract.events import WebhookStatus
from gateway.errors import Conflict, CursorAhead, CursorExpired, InvalidParams, NotFound, RateLimited
from gateway.events.feed import Feed
from gateway.events.model import EventFilter
from gateway.events.sender import Sender
from gateway.events.store import WebhookStore
from gateway.events.subscription import (
    MAX_SUBSCRIPTIONS,
    SUBSCRIPTION_HEADER,
    ChallengePace,
    NewSubscription,
    ReceiverUnverified,
    SubscriptionState,
    control_message,
    delivery_state,
    secret_fault,
    subscription_id,
)
from gateway.events.subscription_store import RefreshedSubscription, SubscriptionStore
from gateway.events.urls import url_fault

#: seconds for which deliveries are signed with the previous secret too
_OVERLAP = 3600.0


class SubscriptionService:
    """The subscriptions of clients, each for one event type with its arguments and one receiver."""

    def __init__(
        self,
        *,
        audit: Audit,
        store: SubscriptionStore,
        webhooks: WebhookStore,
        feed: Feed,
        sender: Sender,
        allowed_origins: Iterable[URL],
    ) -> None:
        self._audit = audit
        self._store = store
        self._webhooks = webhooks
        self._feed = feed
        self._sender = sender
        self._allowed_origins = frozenset(allowed_origins)
        self._pace = ChallengePace()

    async def subscribe(self, caller: Caller, new: NewSubscription) -> SubscriptionState:
        """Create a subscription, or refresh the one with the same client, receiver, event type and arguments.

        Raises InsufficientScope, InvalidParams, ReceiverUnverified, RateLimited for too many challenges, and Conflict
        if the organization has `MAX_SUBSCRIPTIONS`.
        """
        caller.require(Scope.READ)
        faults = [
            fault
            for fault in (url_fault(new.url, self._allowed_origins, "delivery.url"), secret_fault(new.secret))
            if fault
        ]
        if faults:
            raise InvalidParams(faults=faults)
        id_ = subscription_id(caller.organization_id, caller.client_id, new.url, new.type, new.arguments)
        refreshed = await self._refreshed(caller, id_, new)
        if refreshed is not None:
            return refreshed
        position, is_truncated = await self._position(caller, new)
        if await self._store.count(caller.organization_id) >= MAX_SUBSCRIPTIONS:
            raise Conflict(f"the organization has {MAX_SUBSCRIPTIONS} subscriptions; unsubscribe from some")
        if not await self._store.is_verified(caller, new.url):
            await self._verify(caller, id_, new)
        with self._audit.record("subscription.create", caller, target=id_, connector_id=new.connector_id):
            created = await self._store.create(caller, id_, new, position)
        if created is None:  # a concurrent request created it
            return await self.subscribe(caller, new)
        return SubscriptionState(
            id=id_, expires_at=created.expires_at, cursor=position, is_truncated=is_truncated, deliveries=None
        )

    async def unsubscribe(self, caller: Caller, type_: str, arguments: Mapping[str, str], url: str) -> None:
        """Delete a subscription; raises InsufficientScope and NotFound."""
        caller.require(Scope.READ)
        id_ = subscription_id(caller.organization_id, caller.client_id, url, type_, arguments)
        with self._audit.record("subscription.delete", caller, target=id_):
            if not await self._store.delete(caller.organization_id, id_):
                raise NotFound("there is no such subscription")

    async def _refreshed(self, caller: Caller, id_: str, new: NewSubscription) -> SubscriptionState | None:
        found = await self._store.refresh(caller, id_, new)
        if found is None:
            return None
        if new.secret != found.before.secrets[0]:
            await self._webhooks.rotate(found.before.webhook, new.secret, _OVERLAP)
        return _state(id_, found)

    async def _position(self, caller: Caller, new: NewSubscription) -> tuple[int, bool]:
        """The id after which deliveries begin, and whether events after the cursor are left out."""
        organization_id = caller.organization_id
        try:
            page = await self._feed.read(organization_id, EventFilter(), new.after, 1)
        except (CursorExpired, CursorAhead) as unreadable:
            return unreadable.continues_after, True
        if new.after is None:
            return page.latest_id, False
        oldest = 0 if new.max_age is None else await self._store.last_before(organization_id, new.max_age)
        return max(new.after, oldest), oldest > new.after

    async def _verify(self, caller: Caller, id_: str, new: NewSubscription) -> None:
        """Send a challenge that the receiver must return, so that nobody subscribes a receiver against its will."""
        host = (URL(new.url, encoded=True).raw_host or "").removesuffix(".")
        seconds = self._pace.wait(host, caller.organization_id, time.monotonic())
        if seconds:
            raise RateLimited("this host got too many challenges within a minute", retry_after=seconds)
        challenge = secrets.token_urlsafe(32)
        message_id, body = control_message("verification", challenge=challenge)
        attempt = await self._sender.send(
            UUID(id_.removeprefix("sub_")), new.url, message_id, body, [new.secret], {SUBSCRIPTION_HEADER: id_}
        )
        if not attempt.is_success:
            raise ReceiverUnverified(attempt.failure or "challenge_failed")
        if not hmac.compare_digest(_returned(attempt.body), challenge.encode()):
            raise ReceiverUnverified("challenge_failed")


def _returned(body: str | None) -> bytes:
    """The challenge in the body of a response; empty without one."""
    try:
        document = msgspec.json.decode(body or "")
    except (msgspec.DecodeError, RecursionError):
        return b""
    challenge = document.get("challenge") if isinstance(document, dict) else None
    return challenge.encode(errors="replace") if isinstance(challenge, str) else b""


def _state(id_: str, found: RefreshedSubscription) -> SubscriptionState:
    webhook = found.before.webhook
    is_active = webhook.status is WebhookStatus.ACTIVE
    return SubscriptionState(
        id=id_,
        expires_at=found.expires_at,
        cursor=found.cursor,
        is_truncated=False,
        deliveries=delivery_state(is_active, webhook.failing_since, found.last),
    )
