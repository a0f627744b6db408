"""A webhook, its deliveries, and the result of a turn of deliveries. Pure."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from uuid import UUID

import msgspec

from gateway.contract.events import (
    DeliveryStatus,
    DeliveryView,
    EventType,
    WebhookStatus,
    WebhookTestView,
    WebhookView,
)
from gateway.events.model import Event, EventFilter
from gateway.events.retries import hold_pause, is_given_up, retry_pause

#: a response with this status disables the webhook
GONE = 410
#: responses with which the receiver of a subscription refuses one event for good (SEP-3415)
_REFUSES_EVENT = frozenset({GONE, 413})
#: seconds for which a delivery to a subscription is retried, and after which failing deliveries are suspended
_SUBSCRIPTION_RETRIES, _SUBSCRIPTION_FAILING = 900.0, 3600.0


class DeliveryRules(msgspec.Struct, frozen=True, kw_only=True):
    """When the gateway gives up a delivery, and when it disables the webhook."""

    #: seconds for which a delivery is retried
    retry_seconds: float
    #: seconds without a success after which the webhook is disabled
    failing_seconds: float
    #: statuses after which a delivery is not retried
    refuses_event: Collection[int] = frozenset()
    #: statuses that disable the webhook
    disables: Collection[int] = frozenset({GONE})


class Webhook(msgspec.Struct, frozen=True, kw_only=True):
    """A subscription to the feed of an organization."""

    id: UUID
    organization_id: UUID
    client_id: UUID
    is_callback: bool
    url: str
    description: str | None
    types: Sequence[EventType]
    connector_id: UUID | None
    workspace_name: str | None
    entity: str | None
    workspaces: Sequence[str] | None
    #: the person who created it, whose alone it is
    owner_id: UUID | None
    include_record: bool
    status: WebhookStatus
    status_reason: str | None
    created_at: datetime
    updated_at: datetime
    #: until when deliveries are signed with the previous secret too
    previous_until: datetime | None
    position: int
    failures: int
    failing_since: datetime | None
    fence: int
    #: the id of a subscription of the Model Context Protocol, which decides the form of deliveries; None without one
    subscription_id: str | None
    #: when a subscription expires; None for never
    expires_at: datetime | None

    def rules(self, retry_seconds: float) -> DeliveryRules:
        """The rules for its deliveries; `retry_seconds` are those of webhooks."""
        if self.subscription_id is None:
            return DeliveryRules(retry_seconds=retry_seconds, failing_seconds=retry_seconds)
        return DeliveryRules(
            retry_seconds=_SUBSCRIPTION_RETRIES,
            failing_seconds=_SUBSCRIPTION_FAILING,
            refuses_event=_REFUSES_EVENT,
            disables=frozenset(),
        )

    @property
    def filter(self) -> EventFilter:
        workspaces = self.workspaces
        if self.workspace_name is not None:
            is_visible = workspaces is None or self.workspace_name in workspaces
            workspaces = [self.workspace_name] if is_visible else []
        callback = self.id if self.is_callback else None
        return EventFilter(
            types=self.types,
            connector_id=self.connector_id,
            entity=self.entity,
            workspaces=workspaces,
            person_id=self.owner_id,
            callback=callback,
        )

    @property
    def view(self) -> WebhookView:
        """The webhook as callers see it."""
        return WebhookView(
            id=str(self.id),
            url=self.url,
            types=list(self.types),
            status=self.status,
            created_at=self.created_at,
            updated_at=self.updated_at,
            status_reason=self.status_reason,
            connector_id=None if self.connector_id is None else str(self.connector_id),
            workspace_name=self.workspace_name,
            entity=self.entity,
            include_record=self.include_record,
            description=self.description,
            failing_since=self.failing_since,
            is_callback=self.is_callback,
            subscription_id=self.subscription_id,
            expires_at=self.expires_at,
        )

    @staticmethod
    def message_id_of(webhook_id: UUID, event_id: int) -> str:
        """The `webhook-id` of an event: the same for each attempt, and another one for each webhook."""
        return f"msg_{webhook_id.hex}_{event_id}"


class Delivery(msgspec.Struct, frozen=True, kw_only=True):
    """An event for one webhook."""

    event: Event
    status: DeliveryStatus = DeliveryStatus.PENDING
    attempts: int = 0
    first_attempt_at: datetime | None = None
    attempted_at: datetime | None = None
    #: None while an earlier delivery of the same subject is pending
    next_attempt_at: datetime | None = None
    response_status: int | None = None
    duration_ms: int | None = None
    response_body: str | None = None
    error: str | None = None
    #: the category of the failure
    failure: str | None = None

    def view(self, webhook_id: UUID) -> DeliveryView:
        """The delivery to a webhook as callers see it."""
        return DeliveryView(
            id=Webhook.message_id_of(webhook_id, self.event.id),
            event=self.event.view,
            status=self.status,
            attempts=self.attempts,
            attempted_at=self.attempted_at,
            next_attempt_at=self.next_attempt_at,
            response_status=self.response_status,
            duration_ms=self.duration_ms,
            response_body=self.response_body,
            error=self.error,
        )


class DeliveryAttempt(msgspec.Struct, frozen=True, kw_only=True):
    """One request to a receiver and its response."""

    at: datetime
    duration_ms: int
    #: None without a response
    status: int | None = None
    body: str | None = None
    error: str | None = None
    #: `timeout`, `tls_error`, `connection_refused` (for any other failure to connect), `http_4xx` or `http_5xx`
    failure: str | None = None
    #: seconds that the receiver asked to wait
    retry_after: float | None = None

    @property
    def is_success(self) -> bool:
        return self.status is not None and 200 <= self.status < 300

    @property
    def view(self) -> WebhookTestView:
        """The attempt to deliver a test event as callers see it."""
        return WebhookTestView(
            delivered=self.is_success,
            duration_ms=self.duration_ms,
            response_status=self.status,
            response_body=self.body,
            error=self.error,
        )


class TurnResult(msgspec.Struct, frozen=True, kw_only=True):
    """The state after a turn."""

    #: the changed deliveries
    deliveries: Sequence[Delivery]
    position: int
    failures: int
    failing_since: datetime | None
    #: seconds for which nothing is sent to the receiver
    hold: float
    disabled_because: str | None = None


def lanes_of(pending: Iterable[Delivery], events: Iterable[Event]) -> list[list[Delivery]]:
    """Deliveries by subject, in the order of their events; `events` have no delivery yet."""
    lanes: dict[str, list[Delivery]] = {}
    known = set()
    for delivery in sorted(pending, key=lambda each: each.event.id):
        known.add(delivery.event.id)
        lanes.setdefault(delivery.event.subject, []).append(delivery)
    for event in events:
        if event.id not in known:
            lanes.setdefault(event.subject, []).append(Delivery(event=event))
    return list(lanes.values())


def is_due(lane: Sequence[Delivery], now: datetime) -> bool:
    """Whether the first delivery of a lane is due; the others wait for it."""
    due_at = lane[0].next_attempt_at
    return due_at is None or due_at <= now


def attempted(delivery: Delivery, attempt: DeliveryAttempt, rules: DeliveryRules) -> Delivery:
    """The delivery after an attempt; a failed one is due again later, or given up."""
    first_attempt_at = delivery.first_attempt_at or attempt.at
    attempts = delivery.attempts + 1
    status, next_attempt_at = DeliveryStatus.SUCCEEDED, None
    is_over = attempt.status in rules.refuses_event or is_given_up(first_attempt_at, attempt.at, rules.retry_seconds)
    if not attempt.is_success and is_over:
        status = DeliveryStatus.FAILED
    elif not attempt.is_success:
        status = DeliveryStatus.PENDING
        pause = attempt.retry_after if attempt.retry_after is not None else retry_pause(attempts)
        # The last attempt is made when the time for retries is over.
        last_attempt_at = first_attempt_at + timedelta(seconds=rules.retry_seconds)
        next_attempt_at = min(attempt.at + timedelta(seconds=pause), last_attempt_at)
    return msgspec.structs.replace(
        delivery,
        status=status,
        attempts=attempts,
        first_attempt_at=first_attempt_at,
        attempted_at=attempt.at,
        next_attempt_at=next_attempt_at,
        response_status=attempt.status,
        duration_ms=attempt.duration_ms,
        response_body=attempt.body,
        error=attempt.error,
        failure=attempt.failure,
    )


def turn_result(
    webhook: Webhook,
    lanes: Sequence[Sequence[Delivery]],
    stored: Collection[int],
    done: Mapping[int, Delivery],
    attempts: Sequence[DeliveryAttempt],
    position: int,
    now: datetime,
    rules: DeliveryRules,
) -> TurnResult:
    """The result of a turn.

    `stored`: ids of events whose deliveries are stored already. `done`: the attempted deliveries.
    """
    failures, failing_since, hold = webhook.failures, webhook.failing_since, 0.0
    if any(attempt.is_success for attempt in attempts):
        failures, failing_since = 0, None
    elif attempts:
        failures, failing_since = failures + 1, failing_since or now
        hold = hold_pause(failures)
    asked = [attempt.retry_after for attempt in attempts if attempt.status in (429, 503) and attempt.retry_after]
    because = None
    if any(attempt.status in rules.disables for attempt in attempts):
        because = "the receiver answered 410 Gone"
    elif failing_since is not None and is_given_up(failing_since, now, rules.failing_seconds):
        because = f"no delivery has succeeded since {failing_since:%Y-%m-%d %H:%M} UTC"
    return TurnResult(
        deliveries=[delivery for lane in lanes for delivery in _changed(lane, stored, done, now)],
        position=position,
        failures=failures,
        failing_since=failing_since,
        hold=max([hold, *asked]),
        disabled_because=because,
    )


def _changed(
    lane: Sequence[Delivery], stored: Collection[int], done: Mapping[int, Delivery], now: datetime
) -> Iterable[Delivery]:
    """The deliveries of a lane that must be stored; only the first pending one has a `next_attempt_at`."""
    has_head = False
    for before in lane:
        after = done.get(before.event.id, before)
        if after.status is DeliveryStatus.PENDING:
            due_at = None if has_head else after.next_attempt_at or now
            after, has_head = msgspec.structs.replace(after, next_attempt_at=due_at), True
        if after != before or before.event.id not in stored:
            yield after
