"""Webhooks: subscriptions to events, their secrets and deliveries."""

from typing import Annotated, Any, ClassVar, Literal
from uuid import UUID

from aiohttp import web
from msgspec.structs import asdict
from pydantic import Field

from gateway.contract.events import (
    CreatedWebhookView,
    DeliveryPage,
    DeliveryStatus,
    DeliveryView,
    RotatedSecretView,
    WebhookPage,
    WebhookTestView,
    WebhookView,
)
from gateway.events.model import event_types
from gateway.events.service import WebhookRequest
from gateway.events.urls import MAX_URL
from gateway.events.webhook import Delivery, DeliveryAttempt, Webhook
from gateway.http.api.events import event_view
from gateway.http.bodies import Body, Name, QueryString, path_id, read_body, read_query
from gateway.http.keys import CALLER, SERVICES
from gateway.http.responses import cursor_of, json_response, read_time_cursor

_Url = Annotated[str, Field(max_length=MAX_URL)]
_Types = Annotated[list[str], Field(min_length=1, max_length=50)]
_Description = Annotated[str, Field(max_length=500, pattern=r"^[^\x00]*$")]
_ConnectorId = Annotated[UUID, Field(strict=False)]


class CreateWebhook(Body):
    """A subscription to events."""

    EXAMPLES: ClassVar = {
        "records": {"url": "https://app.example.com/webhooks", "types": ["record.*"], "entity": "tickets"},
        "jobs": {"url": "https://app.example.com/webhooks", "types": ["job.failed", "job.unknown"]},
    }

    url: _Url = Field(description="the receiver: https at a public address, or at an origin that the operator allows")
    types: _Types = Field(description="the types of events, or groups such as `job.*`")
    connector_id: _ConnectorId | None = Field(None, description="only events of this connector")
    workspace_name: Name | None = Field(None, description="only events of this workspace")
    entity: Name | None = Field(None, description="only records of this entity")
    include_record: bool = Field(False, description="whether deliveries hold the record as the copy has it")
    description: _Description | None = Field(None, description="what the webhook is for")


class ChangeWebhook(Body):
    """What to change; members that are left out stay, null removes a restriction."""

    EXAMPLES: ClassVar = {"enable": {"status": "active"}, "types": {"types": ["job.*"]}}

    url: _Url = Field(default_factory=str, description="the receiver")
    types: _Types = Field(default_factory=list, description="the types of events, or groups such as `job.*`")
    connector_id: _ConnectorId | None = Field(None, description="only events of this connector")
    workspace_name: Name | None = Field(None, description="only events of this workspace")
    entity: Name | None = Field(None, description="only records of this entity")
    include_record: bool = Field(False, description="whether deliveries hold the record as the copy has it")
    description: _Description | None = Field(None, description="what the webhook is for")
    status: Literal["active", "disabled"] = Field("active", description="whether events are delivered")


class ReplayBody(Body):
    """From where to deliver again."""

    EXAMPLES: ClassVar = {"replay": {"after": 41}}

    after: int = Field(ge=0, le=2**62, description="events after this id are delivered again")


class WebhookQuery(QueryString):
    """How many."""

    limit: int = Field(100, ge=1, le=1000, description="how many a page holds")
    cursor: str | None = Field(None, description="`next_cursor` of the page before")


class DeliveryQuery(QueryString):
    """Which deliveries."""

    status: DeliveryStatus | None = Field(None, description="only those with this status")
    limit: int = Field(100, ge=1, le=1000, description="how many a page holds")
    cursor: int | None = Field(None, ge=1, le=2**62, description="`next_cursor` of the page before")


def webhook_view(webhook: Webhook) -> WebhookView:
    """The webhook as callers see it."""
    return WebhookView(
        str(webhook.id),
        webhook.url,
        list(webhook.types),
        webhook.status,
        webhook.created_at,
        webhook.updated_at,
        webhook.status_reason,
        None if webhook.connector_id is None else str(webhook.connector_id),
        webhook.workspace_name,
        webhook.entity,
        webhook.include_record,
        webhook.description,
        webhook.failing_since,
        webhook.is_callback,
    )


def delivery_view(webhook_id: UUID, delivery: Delivery) -> DeliveryView:
    """The delivery as callers see it."""
    return DeliveryView(
        Webhook.message_id_of(webhook_id, delivery.event.id),
        event_view(delivery.event),
        delivery.status,
        delivery.attempts,
        delivery.attempted_at,
        delivery.next_attempt_at,
        delivery.response_status,
        delivery.duration_ms,
        delivery.response_body,
        delivery.error,
    )


def webhook_test_view(attempt: DeliveryAttempt) -> WebhookTestView:
    """The attempt to deliver a test event as callers see it."""
    return WebhookTestView(attempt.is_success, attempt.duration_ms, attempt.status, attempt.body, attempt.error)


async def create_webhook(request: web.Request) -> web.Response:
    """Subscribes a receiver to events from now on. Deliveries follow Standard Webhooks: verify `webhook-signature` with
    `secret`, which is shown once. Deliveries are made at least once, in order for each record and job; anything but 2xx
    is retried with back-off for three days.
    """
    body = await read_body(request, CreateWebhook)
    members = body.model_dump() | {"types": event_types(body.types)}
    webhook, secret = await request.app[SERVICES].webhooks.create(request[CALLER], WebhookRequest(**members))
    headers = {"Location": f"/api/v1/webhooks/{webhook.id}", "Cache-Control": "no-store"}
    return json_response(CreatedWebhookView(**asdict(webhook_view(webhook)), secret=secret), 201, headers)


async def list_webhooks(request: web.Request) -> WebhookPage:
    """The organization's webhooks, the newest first."""
    query = read_query(request, WebhookQuery)
    webhooks = await request.app[SERVICES].webhooks.find(
        request[CALLER], read_time_cursor(query.cursor), query.limit + 1
    )
    page = webhooks[: query.limit]
    cursor = cursor_of((page[-1].created_at, page[-1].id)) if len(webhooks) > len(page) else None
    return WebhookPage([webhook_view(webhook) for webhook in page], cursor)


async def get_webhook(request: web.Request) -> WebhookView:
    """A webhook; `status_reason` says why it is disabled."""
    return webhook_view(await request.app[SERVICES].webhooks.get(request[CALLER], path_id(request, "webhook_id")))


async def change_webhook(request: web.Request) -> WebhookView:
    """Changes a webhook. `status: active` enables it again: it continues after the last event that it took."""
    body = await read_body(request, ChangeWebhook)
    change: dict[str, Any] = {name: getattr(body, name) for name in body.model_fields_set}
    if "types" in change:
        change["types"] = event_types(change["types"])
    webhook_id = path_id(request, "webhook_id")
    return webhook_view(await request.app[SERVICES].webhooks.change(request[CALLER], webhook_id, change))


async def delete_webhook(request: web.Request) -> web.Response:
    """Deletes a webhook with its deliveries; an attempt that is under way is not undone."""
    await request.app[SERVICES].webhooks.delete(request[CALLER], path_id(request, "webhook_id"))
    return web.Response(status=204)


async def test_webhook(request: web.Request) -> WebhookTestView:
    """Sends an event of the type `webhook.test` to the receiver, once, and answers what came of it."""
    attempt = await request.app[SERVICES].webhooks.test(request[CALLER], path_id(request, "webhook_id"))
    return webhook_test_view(attempt)


async def rotate_webhook_secret(request: web.Request) -> web.Response:
    """Makes another signing secret. For a day deliveries have a signature by the previous one too."""
    services, webhook_id = request.app[SERVICES], path_id(request, "webhook_id")
    secret, previous_expires_at = await services.webhooks.rotate(request[CALLER], webhook_id)
    return json_response(RotatedSecretView(secret, previous_expires_at), headers={"Cache-Control": "no-store"})


async def list_deliveries(request: web.Request) -> DeliveryPage:
    """A webhook's deliveries, the newest event first, each with the receiver's last response."""
    query, webhook_id = read_query(request, DeliveryQuery), path_id(request, "webhook_id")
    deliveries = await request.app[SERVICES].webhooks.deliveries(
        request[CALLER], webhook_id, query.status, query.cursor, query.limit + 1
    )
    page = deliveries[: query.limit]
    cursor = str(page[-1].event.id) if len(deliveries) > len(page) else None
    return DeliveryPage([delivery_view(webhook_id, delivery) for delivery in page], cursor)


async def replay_webhook(request: web.Request) -> web.Response:
    """Delivers the events after `after` again, each with the `webhook-id` that it had; 410 if they are deleted."""
    body, webhook_id = await read_body(request, ReplayBody), path_id(request, "webhook_id")
    webhook = await request.app[SERVICES].webhooks.replay(request[CALLER], webhook_id, body.after)
    return json_response(webhook_view(webhook), 202)
