"""Events of an organization, webhooks and their deliveries."""

from collections.abc import Sequence
from enum import StrEnum
from typing import Annotated, Any
from uuid import UUID

from msgspec import UNSET, Struct

from gateway.contract.members import ID, TIME, AsOf, Id, PageOf, Time, Url, member

#: maximum characters of the URL of a receiver
MAX_URL = 2000

_RECEIVER = "https://app.example.com/webhooks"
_DATA = (
    "Of a job: `job_id`, `status`, `entity`, `action`, `workspace_name`, `labels`. Of a connector: `connector_id`, "
    "`name`, `kind`, `workspace_name`, `status`, `status_reason`. Of a record: `entity`, `record_id`, and `record` in "
    "deliveries of webhooks that include it. Of an approval: `approval_id`, `job_id`, `status`, `reason`."
)


class EventType(StrEnum):
    """What happened."""

    JOB_SUCCEEDED = "job.succeeded"
    JOB_FAILED = "job.failed"
    JOB_CANCELED = "job.canceled"
    JOB_UNKNOWN = "job.unknown"
    CONNECTOR_CREATED = "connector.created"
    CONNECTOR_NEEDS_REAUTH = "connector.needs_reauth"
    CONNECTOR_DELETED = "connector.deleted"
    RECORD_CREATED = "record.created"
    RECORD_UPDATED = "record.updated"
    RECORD_DELETED = "record.deleted"
    SCHEDULE_MISSED = "schedule.missed"
    APPROVAL_REQUESTED = "approval.requested"
    APPROVAL_APPROVED = "approval.approved"
    APPROVAL_DENIED = "approval.denied"
    APPROVAL_EXPIRED = "approval.expired"
    APPROVAL_SUPERSEDED = "approval.superseded"
    #: the gateway stopped delivering to a webhook
    WEBHOOK_DISABLED = "webhook.disabled"


class WebhookStatus(StrEnum):
    """Whether events are delivered."""

    ACTIVE = "active"
    DISABLED = "disabled"


class DeliveryStatus(StrEnum):
    """The state of a delivery."""

    #: to be sent, or sent again
    PENDING = "pending"
    SUCCEEDED = "succeeded"
    #: not sent again
    FAILED = "failed"


class EventSelection(Struct, frozen=True):
    """A filter of events; None matches all."""

    #: types, or groups such as `job.*`
    types: Sequence[str] | None = None
    connector_id: UUID | None = None
    entity: str | None = None


class NewWebhook(Struct, frozen=True, kw_only=True):
    """A request to create a webhook."""

    url: str
    #: types of events, or groups such as `job.*`
    types: Sequence[str]
    connector_id: UUID | None = None
    workspace_name: str | None = None
    entity: str | None = None
    include_record: bool = False
    description: str | None = None


class EventView(Struct, frozen=True, omit_defaults=True, kw_only=True):
    """An event."""

    id: Annotated[int, member("The event's id; ids grow within the organization.", 42)]
    type: Annotated[EventType, member("What happened.", "record.updated")]
    at: Annotated[Time, member("When it happened.", TIME)]
    data: Annotated[dict[str, Any], member(_DATA, {"entity": "tickets", "record_id": "7"})]
    connector_id: Annotated[Id | None, member("The connector, of events that have one.", ID)] = None


class EventPage(Struct, frozen=True):
    """Events in their order."""

    data: Annotated[list[EventView], member("The events.")]
    next_cursor: Annotated[str, member("`after` of the next call, also where `data` is empty.", "42")]
    latest_id: Annotated[int, member("The id of the newest event; 0 before the first.", 42)]
    as_of: AsOf = UNSET


class WebhookView(Struct, frozen=True, kw_only=True):
    """A subscription to events."""

    id: Annotated[Id, member("The webhook's id.")]
    url: Annotated[Url, member("The receiver.", _RECEIVER)]
    types: Annotated[list[EventType], member("The types of events that are delivered.", ["record.updated"])]
    status: Annotated[WebhookStatus, member("Whether events are delivered.", "active")]
    created_at: Annotated[Time, member("When the webhook was created.")]
    updated_at: Annotated[Time, member("When the webhook was changed.")]
    status_reason: Annotated[str | None, member("Why the webhook is disabled.")] = None
    connector_id: Annotated[Id | None, member("Only events of this connector.", ID)] = None
    workspace_name: Annotated[str | None, member("Only events of this workspace.", "acme")] = None
    entity: Annotated[str | None, member("Only records of this entity.", "tickets")] = None
    include_record: Annotated[bool, member("Whether deliveries contain the record from the copy.", False)] = False
    description: Annotated[str | None, member("What the webhook is for.")] = None
    failing_since: Annotated[Time | None, member("Since when every delivery has failed.")] = None
    is_callback: Annotated[bool, member("Whether it receives only jobs with its URL as `callback_url`.", False)] = False
    subscription_id: Annotated[
        str | None, member("The id of a subscription that an agent's host created by `events/subscribe`.")
    ] = None
    expires_at: Annotated[Time | None, member("When such a subscription expires unless the host refreshes it.")] = None


class CreatedWebhookView(WebhookView, frozen=True, kw_only=True):
    """A new webhook."""

    secret: Annotated[str, member("The signing secret, shown once.", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")]


class WebhookPage(PageOf[WebhookView], frozen=True):
    """Webhooks, the newest first."""


class RotatedSecretView(Struct, frozen=True):
    """A new signing secret."""

    secret: Annotated[str, member("The signing secret, shown once.", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")]
    previous_expires_at: Annotated[Time, member("Until when deliveries are also signed with the previous secret.")]


class WebhookTestView(Struct, frozen=True, kw_only=True):
    """One attempt to deliver an event of the type `webhook.test`."""

    delivered: Annotated[bool, member("Whether the receiver answered 2xx.", True)]
    duration_ms: Annotated[int, member("Milliseconds until the response.", 41)]
    response_status: Annotated[int | None, member("The receiver's status.", 204)] = None
    response_body: Annotated[str | None, member("The first KiB of the response.")] = None
    error: Annotated[str | None, member("Why it failed.")] = None


class DeliveryView(Struct, frozen=True, kw_only=True):
    """An event for one webhook, and the last attempt to deliver it."""

    id: Annotated[str, member("The `webhook-id` header: the same for each attempt.", f"msg_{ID.replace('-', '')}_42")]
    event: Annotated[EventView, member("The event.")]
    status: Annotated[DeliveryStatus, member("The state of the delivery.", "succeeded")]
    attempts: Annotated[int, member("How often it was sent.", 1)]
    attempted_at: Annotated[Time | None, member("When it was last sent.", TIME)] = None
    next_attempt_at: Annotated[Time | None, member("When it is sent next.")] = None
    response_status: Annotated[int | None, member("The status of the last response.", 204)] = None
    duration_ms: Annotated[int | None, member("Milliseconds until the last response.", 41)] = None
    response_body: Annotated[str | None, member("The first KiB of the last response.")] = None
    error: Annotated[str | None, member("Why the last attempt failed.")] = None


class DeliveryPage(PageOf[DeliveryView], frozen=True):
    """Deliveries, the newest event first."""
