"""Webhooks: subscriptions to events, their secrets and deliveries."""

from typing import Annotated, ClassVar, Literal
from uuid import UUID

from aiohttp import web
from pydantic import Field

from gateway.access.identity.model import Scope
from gateway.contract.events import (
    MAX_URL,
    CreatedWebhookView,
    DeliveryPage,
    DeliveryStatus,
    NewWebhook,
    RotatedSecretView,
    WebhookPage,
    WebhookTestView,
    WebhookView,
)
from gateway.web.bodies import Body, Name, QueryString, json_response, path_id, read_body, read_query
from gateway.web.keys import CALLER, SERVICES
from gateway.web.route import Route

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
    include_record: bool = Field(False, description="whether deliveries contain the record from the copy")
    description: _Description | None = Field(None, description="what the webhook is for")


class ChangeWebhook(Body):
    """Changes of a webhook; members that are left out do not change, null removes a restriction."""

    EXAMPLES: ClassVar = {"enable": {"status": "active"}, "types": {"types": ["job.*"]}}

    url: _Url = Field(default_factory=str, description="the receiver")
    types: _Types = Field(default_factory=list, description="the types of events, or groups such as `job.*`")
    connector_id: _ConnectorId | None = Field(None, description="only events of this connector")
    workspace_name: Name | None = Field(None, description="only events of this workspace")
    entity: Name | None = Field(None, description="only records of this entity")
    include_record: bool = Field(False, description="whether deliveries contain the record from the copy")
    description: _Description | None = Field(None, description="what the webhook is for")
    status: Literal["active", "disabled"] = Field("active", description="whether events are delivered")


class ReplayBody(Body):
    """The position from which events are delivered again."""

    EXAMPLES: ClassVar = {"replay": {"after": 41}}

    after: int = Field(ge=0, le=2**62, description="events after this id are delivered again")


class WebhookQuery(QueryString):
    """The page of webhooks."""

    limit: int = Field(100, ge=1, le=1000, description="maximum webhooks of a page")
    cursor: str | None = Field(None, description="`next_cursor` of the page before")


class DeliveryQuery(QueryString):
    """The filter and page of deliveries."""

    status: DeliveryStatus | None = Field(None, description="only those with this status")
    limit: int = Field(100, ge=1, le=1000, description="maximum deliveries of a page")
    cursor: int | None = Field(None, ge=1, le=2**62, description="`next_cursor` of the page before")


async def create_webhook(request: web.Request) -> web.Response:
    """Subscribes a receiver to events from now on. Deliveries follow Standard Webhooks: verify `webhook-signature` with
    `secret`, which is shown once. Each event is delivered at least once, in order for each record and job; a delivery
    without a 2xx response is retried with back-off, for three days by default.
    """
    body = await read_body(request, CreateWebhook)
    await _require_connector(request, body.connector_id)
    webhook = await request.app[SERVICES].events.webhooks.create(request[CALLER], NewWebhook(**body.model_dump()))
    headers = {"Location": f"/api/v1/webhooks/{webhook.id}", "Cache-Control": "no-store"}
    return json_response(webhook, 201, headers)


async def created_once(request: web.Request, body: CreateWebhook, key: UUID) -> tuple[WebhookView, str | None]:
    """The webhook that this idempotency key created, with its secret if it is new.

    Raises NotFound for the connector, InvalidParams, IdempotencyMismatch and Conflict.
    """
    await _require_connector(request, body.connector_id)
    new = NewWebhook(**body.model_dump())
    return await request.app[SERVICES].events.webhooks.create_once(request[CALLER], new, key)


async def changed(request: web.Request, webhook_id: UUID, body: ChangeWebhook) -> WebhookView:
    """The webhook with the members of the body that were sent; raises NotFound, InvalidParams and Conflict."""
    change = {name: getattr(body, name) for name in body.model_fields_set}
    await _require_connector(request, body.connector_id)
    return await request.app[SERVICES].events.webhooks.change(request[CALLER], webhook_id, change)


async def _require_connector(request: web.Request, connector_id: UUID | None) -> None:
    """Raise NotFound for a connector that the caller cannot access: the webhook would never send anything."""
    if connector_id is not None:
        await request.app[SERVICES].connectors.access.get(request[CALLER], connector_id)


async def list_webhooks(request: web.Request) -> WebhookPage:
    """The organization's webhooks, the newest first."""
    query = read_query(request, WebhookQuery)
    return await request.app[SERVICES].events.webhooks.find(request[CALLER], query.cursor, query.limit)


async def get_webhook(request: web.Request) -> WebhookView:
    """A webhook. If it is disabled, `status_reason` says why."""
    return await request.app[SERVICES].events.webhooks.get(request[CALLER], path_id(request, "webhook_id"))


async def change_webhook(request: web.Request) -> WebhookView:
    """Changes a webhook. `status: active` enables it again: it continues after the last event that it received."""
    body = await read_body(request, ChangeWebhook)
    return await changed(request, path_id(request, "webhook_id"), body)


async def delete_webhook(request: web.Request) -> web.Response:
    """Deletes a webhook with its deliveries; an attempt in progress continues."""
    await request.app[SERVICES].events.webhooks.delete(request[CALLER], path_id(request, "webhook_id"))
    return web.Response(status=204)


async def test_webhook(request: web.Request) -> WebhookTestView:
    """Sends an event of the type `webhook.test` to the receiver, once, and returns the result."""
    return await request.app[SERVICES].events.webhooks.test(request[CALLER], path_id(request, "webhook_id"))


async def rotate_webhook_secret(request: web.Request) -> web.Response:
    """Creates a new signing secret. For a day deliveries are signed with the previous one too."""
    rotated = await request.app[SERVICES].events.webhooks.rotate(request[CALLER], path_id(request, "webhook_id"))
    return json_response(rotated, headers={"Cache-Control": "no-store"})


async def list_deliveries(request: web.Request) -> DeliveryPage:
    """A webhook's deliveries, the newest event first, each with the receiver's last response."""
    query, webhook_id = read_query(request, DeliveryQuery), path_id(request, "webhook_id")
    return await request.app[SERVICES].events.webhooks.deliveries(
        request[CALLER], webhook_id, query.status, query.cursor, query.limit
    )


async def replay_webhook(request: web.Request) -> web.Response:
    """Delivers the events after `after` again, each with its previous `webhook-id`; 410 if they have been deleted."""
    body, webhook_id = await read_body(request, ReplayBody), path_id(request, "webhook_id")
    webhook = await request.app[SERVICES].events.webhooks.replay(request[CALLER], webhook_id, body.after)
    return json_response(webhook, 202)


_TAG = "Webhooks"
_WEBHOOKS = "/api/v1/webhooks"
_WEBHOOK = _WEBHOOKS + "/{webhook_id}"

#: the routes of these handlers, in the order in which they are tried
ROUTES: tuple[Route, ...] = (
    Route(
        "POST",
        _WEBHOOKS,
        create_webhook,
        "Create a webhook",
        _TAG,
        body=CreateWebhook,
        response=CreatedWebhookView,
        answers={201: "The webhook with its secret"},
        errors=(409,),
        sends={201: ("Location", "Cache-Control")},
        scope=Scope.WRITE,
        audit="webhook.create",
        command="gateway webhooks create https://app.example.com/webhooks --type 'job.*'",
    ),
    Route(
        "GET",
        _WEBHOOKS,
        list_webhooks,
        "List webhooks, the newest first",
        _TAG,
        query=WebhookQuery,
        response=WebhookPage,
        scope=Scope.READ,
        command="gateway webhooks list",
    ),
    Route("GET", _WEBHOOK, get_webhook, "Get a webhook", _TAG, response=WebhookView, scope=Scope.READ),
    Route(
        "PATCH",
        _WEBHOOK,
        change_webhook,
        "Change, disable or enable a webhook",
        _TAG,
        body=ChangeWebhook,
        response=WebhookView,
        scope=Scope.WRITE,
        audit="webhook.update",
    ),
    Route(
        "DELETE",
        _WEBHOOK,
        delete_webhook,
        "Delete a webhook",
        _TAG,
        answers={204: "The webhook is deleted"},
        scope=Scope.WRITE,
        audit="webhook.delete",
        command="gateway webhooks delete $WEBHOOK",
    ),
    Route(
        "POST",
        _WEBHOOK + "/test",
        test_webhook,
        "Send a test event",
        _TAG,
        response=WebhookTestView,
        answers={200: "The result of the attempt"},
        scope=Scope.WRITE,
        audit="webhook.test",
        command="gateway webhooks test $WEBHOOK",
    ),
    Route(
        "POST",
        _WEBHOOK + "/rotate",
        rotate_webhook_secret,
        "Create a new signing secret",
        _TAG,
        response=RotatedSecretView,
        answers={200: "The secret"},
        sends={200: ("Cache-Control",)},
        scope=Scope.WRITE,
        audit="webhook.rotate",
        command="gateway webhooks rotate $WEBHOOK",
    ),
    Route(
        "GET",
        _WEBHOOK + "/deliveries",
        list_deliveries,
        "List a webhook's deliveries",
        _TAG,
        query=DeliveryQuery,
        response=DeliveryPage,
        scope=Scope.READ,
        command="gateway webhooks deliveries $WEBHOOK",
    ),
    Route(
        "POST",
        _WEBHOOK + "/replay",
        replay_webhook,
        "Deliver past events again",
        _TAG,
        body=ReplayBody,
        response=WebhookView,
        answers={202: "The events are being delivered"},
        errors=(410,),
        scope=Scope.WRITE,
        audit="webhook.replay",
        command="gateway webhooks replay $WEBHOOK --after 41",
    ),
)
