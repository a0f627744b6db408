"""The services of events: the feed, and the webhooks that deliver it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from yarl import URL

from gateway.access.audit.log import Audit
from gateway.access.identity.standing import Standing
from gateway.access.identity.store import IdentityStore
from gateway.events.access import EventAccess
from gateway.events.deliverer import Deliverer, ReadRecords, RightsOf
from gateway.events.feed import Feed
from gateway.events.sender import TIMEOUT, Sender
from gateway.events.service import WebhookService
from gateway.events.store import WebhookStore
from gateway.events.subscription_store import SubscriptionStore
from gateway.events.subscriptions import SubscriptionService
from gateway.foundation.db.notifications import NotificationListener
from gateway.foundation.db.pool import Database
from gateway.foundation.vault.vault import Vault
from gateway.settings import Settings
from gateway.upstream.egress import EgressPolicy, parse_override
from gateway.upstream.transport import Transport


@dataclass(frozen=True, kw_only=True)
class EventServices:
    """The feed of an organization's events, and its deliveries."""

    feed: Feed
    access: EventAccess
    webhooks: WebhookService
    subscriptions: SubscriptionService
    deliverer: Deliverer


@asynccontextmanager
async def open_events(
    settings: Settings,
    *,
    process: str,
    database: Database,
    notifications: NotificationListener,
    vault: Vault,
    audit: Audit,
    identity: IdentityStore,
    standing: Standing,
    read_records: ReadRecords,
    rights_of: RightsOf,
) -> AsyncIterator[EventServices]:
    """Open the feed, and the sender of deliveries.

    The sender has separate connections, because deliveries must not reach the overrides of applications.
    """
    feed = Feed(database)
    notifications.subscribe({"events": feed.on_notify}, feed.wake_all)
    policy = EgressPolicy.of(map(parse_override, settings.webhook_origins))
    async with Transport(policy, idle=TIMEOUT, max_connections=settings.max_upstream_connections) as transport:
        sender, store = Sender(transport), WebhookStore(database, vault)
        subscriptions, origins = SubscriptionStore(database, vault), list(map(URL, settings.webhook_origins))
        yield EventServices(
            feed=feed,
            access=EventAccess(feed, identity, standing),
            webhooks=WebhookService(audit, store, feed, sender, origins),
            subscriptions=SubscriptionService(
                audit=audit,
                store=subscriptions,
                webhooks=store,
                feed=feed,
                sender=sender,
                allowed_origins=origins,
            ),
            deliverer=Deliverer(
                store=store,
                subscriptions=subscriptions,
                feed=feed,
                sender=sender,
                worker=process,
                read_records=read_records,
                rights_of=rights_of,
                retry_seconds=settings.webhook_retry_seconds,
            ),
        )
