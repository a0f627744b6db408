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
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from uuid import UUID

import msgspec

from gateway.errors import CursorExpired, GatewayError, InvalidParams, Unavailable
from gateway.events.feed import Feed
from gateway.events.model import Event
from gateway.events.sender import Sender
from gateway.events.store import MAX_PENDING, ClaimedWebhook, WebhookStore
from gateway.events.webhook import (
    GONE,
    Delivery,
    DeliveryAttempt,
    Webhook,
    attempted,
    is_due,
    lanes_of,
    turn_result,
)
from gateway.foundation.aio.clock import CLOCK

log = logging.getLogger(__name__)

#: seconds after the claim from which a turn starts no further attempt
_TURN = 5.0
#: seconds that leases last without a renewal
_LEASE = 8.0
#: seconds between renewals
RENEWAL = 2.5
#: maximum events that a turn reads from the feed
_WINDOW = 64
#: concurrent requests of a turn
_CONCURRENCY = 8
#: concurrent turns of a worker
_TURNS = 200
#: concurrent turns that use PostgreSQL
_READERS = 4
#: seconds between queries for webhooks that are due, in case a notification was lost
_POLL_INTERVAL = 1.0

#: organization, connector, entity, ids → the records that the copy has, by id
ReadRecords = Callable[[UUID, UUID, UUID, str, Sequence[str]], Awaitable[Mapping[str, msgspec.Raw]]]


class Deliverer:
    """The deliveries of one worker."""

    def __init__(
        self,
        store: WebhookStore,
        feed: Feed,
        sender: Sender,
        worker: str,
        read_records: ReadRecords,
        retry_seconds: int,
    ) -> None:
        self._store = store
        self._feed = feed
        self._sender = sender
        self._worker = worker
        self._read_records = read_records
        self._retry_seconds = retry_seconds
        self._woken = asyncio.Event()
        #: limits the connections of turns, because jobs need the pool too
        self._reading = asyncio.Semaphore(_READERS)
        #: organizations with an active webhook, so that other organizations' events are ignored; None if unknown
        self._subscribed: set[str] | None = None
        #: turns in progress, with their organizations
        self._turns: dict[asyncio.Task[None], UUID] = {}

    def on_event(self, organization_id: str) -> None:
        """Events were added to an organization's feed."""
        if self._subscribed is None or organization_id in self._subscribed:
            self._woken.set()

    def on_webhook(self, _webhook_id: str) -> None:
        """A webhook was created or changed."""
        self.forget()

    def forget(self) -> None:
        """Read everything again, because notifications may have been missed."""
        self._subscribed = None
        self._woken.set()

    async def deliver(self) -> None:
        """Start the turns of due webhooks, or wait until there may be some."""
        self._woken.clear()
        if self._subscribed is None:
            self._subscribed = await self._store.subscribed()
        ends_at = asyncio.get_running_loop().time() + _TURN
        busy = Counter(self._turns.values())
        claimed = await self._store.claim(self._worker, _LEASE, _TURNS, busy) if len(self._turns) < _TURNS else []
        for each in claimed:
            task = asyncio.create_task(self._turn(each, ends_at), name=f"webhook {each.webhook.id}")
            self._turns[task] = each.webhook.organization_id
            task.add_done_callback(self._ended)
        if not claimed:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_POLL_INTERVAL):
                    await self._woken.wait()

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

    async def _turn(self, claimed: ClaimedWebhook, ends_at: float) -> None:
        extra = {"webhook": str(claimed.webhook.id)}
        try:
            await self._deliver(claimed, ends_at)
        except Exception as error:
            if isinstance(error, Unavailable):
                log.warning("a turn of deliveries ends, and is repeated: %s", error.detail, extra=extra)
            else:
                log.exception("a turn of deliveries failed", extra=extra)
            # If PostgreSQL is unavailable, the lease expires.
            with contextlib.suppress(Unavailable):
                await self._store.end_lease(claimed.webhook)

    async def _deliver(self, claimed: ClaimedWebhook, ends_at: float) -> None:
        webhook = claimed.webhook
        async with self._reading:
            pending = await self._store.pending(webhook)
            events, position = await self._new_events(webhook, MAX_PENDING - len(pending))
            lanes = lanes_of(pending, events)
            found = await self._records_of(webhook, lanes)
        turn = _Turn(self._sender, claimed, found, self._retry_seconds, ends_at)
        await turn.run([lane for lane in lanes if is_due(lane, CLOCK.now())])
        stored = {delivery.event.id for delivery in pending}
        result = turn_result(
            webhook,
            lanes,
            stored=stored,
            done=turn.done,
            attempts=turn.attempts,
            position=position,
            now=CLOCK.now(),
            retry_seconds=self._retry_seconds,
        )
        async with self._reading:
            is_stored = await self._store.finish(webhook, result)
        if not is_stored:
            log.warning("lost the lease of a webhook; its deliveries are repeated", extra={"webhook": str(webhook.id)})
        elif result.disabled_because is not None:
            log.warning("disabled a webhook", extra={"webhook": str(webhook.id), "reason": result.disabled_because})

    async def _new_events(self, webhook: Webhook, room: int) -> tuple[Sequence[Event], int]:
        """Events of the feed that match the filter and have no delivery yet, and the position after them."""
        if room <= 0:
            return (), webhook.position
        try:
            page = await self._feed.read(webhook.organization_id, webhook.filter, webhook.position, min(room, _WINDOW))
        except CursorExpired as expired:
            # The webhook was disabled or full for longer than events are stored.
            log.warning("events were deleted before their delivery", extra={"webhook": str(webhook.id)})
            return (), int(expired.extra["begins_after"])
        except InvalidParams:
            # A backup from before these events has been restored.
            page = await self._feed.read(webhook.organization_id, webhook.filter, None, 1)
            return (), page.latest_id
        return page.events, page.next_after

    async def _records_of(
        self, webhook: Webhook, lanes: Sequence[Sequence[Delivery]]
    ) -> Mapping[tuple[UUID | None, str, str], msgspec.Raw]:
        """The current records of the copy for these deliveries, if the webhook includes records."""
        if not webhook.include_record:
            return {}
        wanted: dict[tuple[UUID, str], list[str]] = {}
        for lane in lanes:
            for event in (delivery.event for delivery in lane if "record_id" in delivery.event.data):
                assert event.connector_id is not None
                wanted.setdefault((event.connector_id, event.data["entity"]), []).append(event.data["record_id"])
        return {
            (connector_id, entity, record_id): record
            for (connector_id, entity), ids in wanted.items()
            for record_id, record in (
                await self._read_records(webhook.organization_id, webhook.client_id, connector_id, entity, ids)
            ).items()
        }


class _Turn:
    """The requests of one turn: lanes run concurrently, and the deliveries of a lane one after the other."""

    def __init__(
        self,
        sender: Sender,
        claimed: ClaimedWebhook,
        records: Mapping[tuple[UUID | None, str, str], msgspec.Raw],
        retry_seconds: float,
        ends_at: float,
    ) -> None:
        self._sender = sender
        self._webhook, self._secrets = claimed.webhook, claimed.secrets
        self._records = records
        self._retry_seconds = retry_seconds
        self._ends_at = ends_at
        self.done: dict[int, Delivery] = {}
        self.attempts: list[DeliveryAttempt] = []

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
        if any(attempt.status in (429, GONE) for attempt in self.attempts):
            return True
        return len(self.attempts) >= _CONCURRENCY and not any(attempt.is_success for attempt in self.attempts)

    async def _sent(self, delivery: Delivery) -> bool:
        webhook, event = self._webhook, delivery.event
        body = msgspec.json.encode(self._with_record(event))
        attempt = await self._sender.send(
            webhook.id, webhook.url, Webhook.message_id_of(webhook.id, event.id), body, self._secrets
        )
        self.attempts.append(attempt)
        self.done[event.id] = attempted(delivery, attempt, self._retry_seconds)
        return attempt.is_success

    def _with_record(self, event: Event) -> Event:
        place = (event.connector_id, event.data.get("entity", ""), event.data.get("record_id", ""))
        record = self._records.get(place)
        return event if record is None else msgspec.structs.replace(event, data={**event.data, "record": record})
