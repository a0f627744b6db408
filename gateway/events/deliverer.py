"""Deliveries: workers lease webhooks for a turn, and send the events that are due.

Deliveries are not jobs. A job is one unit of work with an end, claimed from the queue of its connector; a webhook has
no end, has new deliveries with every event, and keeps the order of events. A job for each delivery would write a job's
row, its events and its result for a request of a few milliseconds, and jobs of one webhook would run concurrently. The
lease of a webhook (SKIP LOCKED, a fence on every write) is the same mechanism, on the row that has the order.
"""

import asyncio
import contextlib
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from itertools import takewhile
from uuid import UUID

import msgspec

from gateway.access.identity.model import Scope
from gateway.access.identity.store import both
from gateway.access.policy.model import PersonRights
from gateway.contract.events import DeliveryStatus
from gateway.errors import CursorAhead, CursorExpired, GatewayError, Unavailable
from gateway.events.feed import Feed
from gateway.events.model import Event, EventFilter
from gateway.events.sender import Sender
from gateway.events.store import MAX_PENDING, ClaimedWebhook, WebhookStore
from gateway.events.subscription import SUBSCRIPTION_HEADER, control_message, end_of, occurrence, safe_cursor
from gateway.events.subscription_store import EndedSubscription, SubscriptionStore
from gateway.events.webhook import (
    Delivery,
    DeliveryAttempt,
    DeliveryRules,
    Webhook,
    attempted,
    is_due,
    lanes_of,
    turn_result,
)
from gateway.foundation.aio.clock import CLOCK
from gateway.foundation.aio.turns import Turns, compute_for
from gateway.foundation.large_json import encoded

log = logging.getLogger(__name__)

#: seconds after the claim from which a turn starts no further attempt
_TURN = 5.0
#: seconds that leases last without a renewal
_LEASE = 8.0
#: seconds between renewals
RENEWAL = 2.5
#: maximum events that a turn reads from the feed
_WINDOW = 64
#: bytes of the largest record in a delivery; an event of a larger one has none
MAX_RECORD = 256 << 10
#: bytes of all records that a turn has in memory; deliveries of further ones wait for the next turn
_RECORDS = 512 << 10
#: concurrent requests of a turn
_CONCURRENCY = 8
#: concurrent turns of a worker
_TURNS = 200
#: webhooks of one claim from which on those are skipped that select none of the new events, and for how many seconds
_CROWD, _CROWDED = 50, 60.0
#: concurrent turns that use PostgreSQL
_READERS = 4
#: seconds between queries for webhooks that are due, in case a notification was lost
_POLL_INTERVAL = 1.0
#: seconds between queries for subscriptions that ended, in case a notification was lost
_ENDED_INTERVAL = 30.0
#: seconds between two such queries at least
_ENDED_PAUSE = 1.0

#: connector, entity and id of a record
_Place = tuple[UUID | None, str, str]


class RecordsOfDeliveries(msgspec.Struct, frozen=True):
    """Records that the copy has, by id, and the ids of those for which there was no room."""

    found: Mapping[str, msgspec.Raw]
    later: Collection[str]


#: organization, client, connector, entity, ids, bytes → the records of at most `MAX_RECORD` bytes
ReadRecords = Callable[[UUID, UUID, UUID, str, Sequence[str], int], Awaitable[RecordsOfDeliveries]]

#: what a person may do now; None for a client that is no person
RightsOf = Callable[[UUID], Awaitable[PersonRights | None]]


class Deliverer:
    """The deliveries of one worker."""

    def __init__(
        self,
        store: WebhookStore,
        subscriptions: SubscriptionStore,
        feed: Feed,
        sender: Sender,
        worker: str,
        read_records: ReadRecords,
        rights_of: RightsOf,
        retry_seconds: int,
    ) -> None:
        self._store = store
        self._subscriptions = subscriptions
        self._feed = feed
        self._sender = sender
        self._worker = worker
        self._read_records = read_records
        self._rights_of = rights_of
        self._retry_seconds = retry_seconds
        self._woken = asyncio.Event()
        #: limits the connections of turns, because jobs need the pool too; organizations take turns
        self._reading = Turns(_READERS)
        #: organizations with an active webhook, so that other organizations' events are ignored; None if unknown
        self._subscribed: set[str] | None = None
        #: turns in progress, with their organizations
        self._turns: dict[asyncio.Task[None], UUID] = {}
        #: when subscriptions that ended are looked for, in seconds of the loop's clock
        self._ended_at = 0.0
        self._looked_at = 0.0
        #: until when webhooks that select none of the new events are skipped first, in seconds of the loop's clock
        self._crowded_until = 0.0
        self._skips_from = 0.0

    def on_event(self, organization_id: str) -> None:
        """Events were added to an organization's feed."""
        if self._subscribed is None or organization_id in self._subscribed:
            self._woken.set()

    def on_webhook(self, _webhook_id: str) -> None:
        """A webhook was created or changed."""
        self.forget()

    def on_client(self, _client_id: str) -> None:
        """The rights of a client were changed."""
        self._look_for_ended()
        self._woken.set()

    def forget(self) -> None:
        """Read everything again, because notifications may have been missed."""
        self._subscribed = None
        self._look_for_ended()
        self._woken.set()

    def _look_for_ended(self) -> None:
        self._ended_at = min(self._ended_at, self._looked_at + _ENDED_PAUSE)

    async def deliver(self) -> None:
        """Start the turns of due webhooks, or wait until there may be some."""
        self._woken.clear()
        if self._subscribed is None:
            self._subscribed = await self._store.subscribed()
        now = asyncio.get_running_loop().time()
        if self._skips_from <= now < self._crowded_until:
            await self._skip(now)
        busy = Counter(self._turns.values())
        claimed = await self._store.claim(self._worker, _LEASE, _TURNS, busy) if len(self._turns) < _TURNS else []
        if len(claimed) >= _CROWD:
            self._crowded_until = now + _CROWDED
        for each in claimed:
            self._start(each, partial(self._deliver, each, now + _TURN))
        ended = await self._ended_subscriptions()
        for subscription in ended:
            self._start(subscription.claimed, partial(self._terminate, subscription))
        if not claimed and not ended:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_POLL_INTERVAL):
                    await self._woken.wait()

    async def _skip(self, now: float) -> None:
        """Let webhooks pass by events. It only saves turns, so deliveries go on if it takes too long."""
        try:
            if await self._store.skip() >= _CROWD:
                self._crowded_until = now + _CROWDED
        except Unavailable as error:
            log.warning("webhooks are not skipped for a minute: %s", error.detail)
            self._skips_from = now + _CROWDED

    async def _ended_subscriptions(self) -> Sequence[EndedSubscription]:
        """Lease subscriptions that ended, if there may be some."""
        now, room = asyncio.get_running_loop().time(), _TURNS - len(self._turns)
        if now < self._ended_at or room <= 0:
            return ()
        self._looked_at = now
        ended = await self._subscriptions.claim_ended(self._worker, _LEASE, self._retry_seconds, room)
        self._ended_at = now if len(ended) == room else now + _ENDED_INTERVAL
        return ended

    def _start(self, claimed: ClaimedWebhook, turn: Callable[[], Awaitable[None]]) -> None:
        task = asyncio.create_task(self._turn(claimed, turn), name=f"webhook {claimed.webhook.id}")
        self._turns[task] = claimed.webhook.organization_id
        task.add_done_callback(self._ended)

    async def renew(self) -> None:
        """Renew the leases of the turns, which last for longer than a lease if receivers are slow."""
        if self._turns:
            await self._store.renew(self._worker, _LEASE)

    def _ended(self, task: "asyncio.Task[None]") -> None:
        del self._turns[task]
        self._woken.set()

    async def close(self) -> None:
        """Stop; another worker repeats deliveries without a result."""
        for task in self._turns:
            task.cancel()
        await asyncio.gather(*self._turns, return_exceptions=True)
        with contextlib.suppress(GatewayError):
            await self._store.release(self._worker)

    async def _turn(self, claimed: ClaimedWebhook, turn: Callable[[], Awaitable[None]]) -> None:
        extra = {"webhook": str(claimed.webhook.id)}
        compute_for(claimed.webhook.organization_id)
        try:
            await turn()
        except Exception as error:
            if isinstance(error, Unavailable):
                log.warning("a turn of deliveries ends, and is repeated: %s", error.detail, extra=extra)
            else:
                log.exception("a turn of deliveries failed", extra=extra)
            # If PostgreSQL is unavailable, the lease expires.
            with contextlib.suppress(Unavailable):
                await self._store.end_lease(claimed.webhook)

    async def _terminate(self, ended: EndedSubscription) -> None:
        """Tell the receiver once that its subscription ended and why, and delete the subscription."""
        message = control_message("terminated", error=end_of(ended.reason, ended.failure))
        await _send_control(self._sender, ended.claimed, message)
        await self._subscriptions.delete_ended(ended.claimed, self._retry_seconds)

    async def _deliver(self, claimed: ClaimedWebhook, ends_at: float) -> None:
        webhook, rules = claimed.webhook, claimed.webhook.rules(self._retry_seconds)
        async with self._reading:
            pending = await self._store.pending(webhook)
            events, position, has_gap = await self._new_events(webhook, MAX_PENDING - len(pending))
            lanes = lanes_of(pending, events)
            due = [lane for lane in lanes if is_due(lane, CLOCK.now())]
            found, later = await self._records_of(webhook, due)
        turn = _Turn(self._sender, claimed, found, rules, ends_at, lanes)
        if has_gap and webhook.subscription_id is not None and not await turn.tell_gap(position):
            position = webhook.position  # the next turn finds the gap again
        await turn.run([list(takewhile(lambda each: _place_of(each.event) not in later, lane)) for lane in due])
        stored = {delivery.event.id for delivery in pending}
        result = turn_result(
            webhook,
            lanes,
            stored=stored,
            done=turn.done,
            attempts=turn.attempts,
            position=position,
            now=CLOCK.now(),
            rules=rules,
        )
        async with self._reading:
            is_stored = await self._store.finish(webhook, result)
        if not is_stored:
            log.warning("lost the lease of a webhook; its deliveries are repeated", extra={"webhook": str(webhook.id)})
        elif result.disabled_because is not None:
            log.warning("disabled a webhook", extra={"webhook": str(webhook.id), "reason": result.disabled_because})

    async def _filter_of(self, webhook: Webhook) -> EventFilter:
        """The events that the webhook selects, of those that the person who created it may see now."""
        rights = None if webhook.owner_id is None else await self._rights_of(webhook.owner_id)
        if rights is None:
            return webhook.filter
        seen = rights.workspaces if Scope.READ in rights.scopes else frozenset[str]()
        return msgspec.structs.replace(webhook.filter, workspaces=both(seen, webhook.filter.workspaces))

    async def _new_events(self, webhook: Webhook, room: int) -> tuple[Sequence[Event], int, bool]:
        """Events of the feed without a delivery yet, the position after them, and whether earlier ones are missing."""
        if room <= 0:
            return (), webhook.position, False
        try:
            filter_ = await self._filter_of(webhook)
            page = await self._feed.read(webhook.organization_id, filter_, webhook.position, min(room, _WINDOW))
        except CursorExpired as expired:
            # The webhook was disabled or full for longer than events are stored.
            log.warning("events were deleted before their delivery", extra={"webhook": str(webhook.id)})
            return (), expired.continues_after, True
        except CursorAhead as ahead:
            # A backup from before these events has been restored.
            return (), ahead.continues_after, True
        return page.events, page.next_after, False

    async def _records_of(
        self, webhook: Webhook, lanes: Sequence[Sequence[Delivery]]
    ) -> tuple[Mapping[_Place, msgspec.Raw], Collection[_Place]]:
        """The current records of the copy for these deliveries, if the webhook includes records.

        The deliveries of the places in the second value wait until there is room for their records.
        """
        wanted: dict[tuple[UUID, str], list[str]] = {}
        for event in (delivery.event for lane in lanes for delivery in lane if webhook.include_record):
            if "record_id" in event.data:
                assert event.connector_id is not None
                wanted.setdefault((event.connector_id, event.data["entity"]), []).append(event.data["record_id"])
        records: dict[_Place, msgspec.Raw] = {}
        later: set[_Place] = set()
        room = _RECORDS
        for (connector_id, entity), ids in wanted.items():
            read = await self._read_records(webhook.organization_id, webhook.client_id, connector_id, entity, ids, room)
            records |= {(connector_id, entity, record_id): record for record_id, record in read.found.items()}
            later |= {(connector_id, entity, record_id) for record_id in read.later}
            room -= sum(map(len, map(bytes, read.found.values())))
        return records, later


class _Turn:
    """The requests of one turn: lanes run concurrently, and the deliveries of a lane one after the other."""

    def __init__(
        self,
        sender: Sender,
        claimed: ClaimedWebhook,
        records: Mapping[_Place, msgspec.Raw],
        rules: DeliveryRules,
        ends_at: float,
        lanes: Sequence[Sequence[Delivery]],
    ) -> None:
        self._sender = sender
        self._claimed = claimed
        self._records = records
        self._rules = rules
        self._ends_at = ends_at
        #: ids of events that are neither acknowledged nor given up
        self._unfinished = {delivery.event.id for lane in lanes for delivery in lane}
        self.done: dict[int, Delivery] = {}
        self.attempts: list[DeliveryAttempt] = []

    async def tell_gap(self, position: int) -> bool:
        """Tell the receiver of a subscription that events before `position` are left out; False if it failed."""
        message = control_message("gap", cursor=str(position))
        attempt = await _send_control(self._sender, self._claimed, message)
        self.attempts.append(attempt)
        return attempt.is_success

    async def run(self, lanes: Sequence[Sequence[Delivery]]) -> None:
        """Send the deliveries of these lanes; `done` and `attempts` have the results."""
        waiting = iter(lanes)
        async with asyncio.TaskGroup() as group:
            for _ in range(min(_CONCURRENCY, len(lanes))):
                group.create_task(self._send_lanes(waiting))

    async def _send_lanes(self, lanes: Iterator[Sequence[Delivery]]) -> None:
        for lane in lanes:
            for delivery in lane:
                if self._is_over:
                    return
                if not await self._sent(delivery):
                    break

    @property
    def _is_over(self) -> bool:
        """Whether the rest waits for another turn: time is up, or the receiver asks to wait or refuses everything."""
        if asyncio.get_running_loop().time() > self._ends_at:
            return True
        if any(attempt.status == 429 or attempt.status in self._rules.disables for attempt in self.attempts):
            return True
        return len(self.attempts) >= _CONCURRENCY and not any(attempt.is_success for attempt in self.attempts)

    async def _sent(self, delivery: Delivery) -> bool:
        """Send a delivery; whether the next one of its lane may follow."""
        webhook, event = self._claimed.webhook, delivery.event
        if webhook.subscription_id is None:
            message_id, body = (
                Webhook.message_id_of(webhook.id, event.id),
                await encoded(self._with_record(event)),
            )
        else:
            cursor = {"cursor": str(safe_cursor(event.id, self._unfinished))}
            message_id, body = str(event.id), await encoded(occurrence(event.view) | cursor)
        attempt = await self._sender.send(
            webhook.id, webhook.url, message_id, body, self._claimed.secrets, _headers(webhook)
        )
        self.attempts.append(attempt)
        self.done[event.id] = done = attempted(delivery, attempt, self._rules)
        if done.status is not DeliveryStatus.PENDING:
            self._unfinished.discard(event.id)
        return attempt.is_success

    def _with_record(self, event: Event) -> Event:
        record = self._records.get(_place_of(event))
        return event if record is None else msgspec.structs.replace(event, data={**event.data, "record": record})


def _place_of(event: Event) -> _Place:
    return event.connector_id, event.data.get("entity", ""), event.data.get("record_id", "")


async def _send_control(sender: Sender, claimed: ClaimedWebhook, message: tuple[str, bytes]) -> DeliveryAttempt:
    """Send a message that is no event to the receiver of a subscription."""
    webhook = claimed.webhook
    return await sender.send(webhook.id, webhook.url, *message, claimed.secrets, _headers(webhook))


def _headers(webhook: Webhook) -> Mapping[str, str]:
    return {} if webhook.subscription_id is None else {SUBSCRIPTION_HEADER: webhook.subscription_id}
