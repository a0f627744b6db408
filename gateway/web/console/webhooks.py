"""Webhooks in the console: create, change, deliveries and actions."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode
from uuid import UUID, uuid4

from aiohttp import web

from gateway.access.identity.model import id_of
from gateway.contract.events import DeliveryStatus, EventType, RotatedSecretView, WebhookTestView, WebhookView
from gateway.errors import Conflict, GatewayError, IdempotencyMismatch, InvalidParams, NotFound
from gateway.web.api.webhooks import ChangeWebhook, CreateWebhook, changed, created_once
from gateway.web.bodies import path_id, validated, whole_number
from gateway.web.console.page import connectors_by_id, connectors_to_choose, console_page, see_other
from gateway.web.console.session import chosen_in, read_console_form, read_form_once
from gateway.web.keys import CALLER, SERVICES

_PAGE = "/console/webhooks"
#: maximum webhooks of a page
_LIMIT = 50
#: maximum deliveries of a page
_DELIVERIES = 25
#: maximum suggested workspaces
_WORKSPACES = 100
#: the prefix of the boxes of types
_TYPE = "type:"
#: errors that are shown at the form
_REFUSED = (InvalidParams, Conflict, NotFound)


async def list_webhooks(request: web.Request) -> web.Response:
    """GET /console/webhooks: the webhooks, and the form for another one."""
    return await _listed(request)


async def create_webhook(request: web.Request) -> web.Response:
    """POST /console/webhooks: create a webhook, and show its page with its secret, once.

    A form that is sent again shows the webhook that it created.
    """
    fields = await read_console_form(request)
    try:
        body, key = validated(CreateWebhook, _document_in(fields)), id_of(fields.get("key")) or uuid4()
        webhook, secret = await created_once(request, body, key)
    except IdempotencyMismatch:
        used = Conflict("this form has already created another webhook; press Create again to create this one too")
        return await _listed(request, problem=used, fields=fields)
    except _REFUSED as error:
        return await _listed(request, problem=error, fields=fields)
    return await _shown(request, UUID(webhook.id), secret=secret, is_repeated=secret is None)


async def change_subscription(request: web.Request) -> web.Response:
    """POST /console/webhooks/{webhook_id}/change: another receiver, other events."""
    fields, webhook_id = await read_console_form(request), path_id(request, "webhook_id")
    try:
        stored = await request.app[SERVICES].events.webhooks.get(request[CALLER], webhook_id)
        document = _document_in(fields)
        # A stored connector may be deleted or hidden from the editor, whose other changes do not depend on it.
        if stored.connector_id is not None and document["connector_id"] == UUID(stored.connector_id):
            del document["connector_id"]
        await changed(request, webhook_id, validated(ChangeWebhook, document))
    except _REFUSED as error:
        return await _shown(request, webhook_id, problem=error, fields=fields)
    return see_other(f"{_PAGE}/{webhook_id}")


async def show_webhook(request: web.Request) -> web.Response:
    """GET /console/webhooks/{webhook_id}."""
    return await _shown(request, path_id(request, "webhook_id"))


async def change_webhook(request: web.Request) -> web.Response:
    """POST /console/webhooks/{webhook_id}: pause it, or continue after the last delivered event."""
    fields, webhook_id = await read_console_form(request), path_id(request, "webhook_id")
    status = "active" if fields.get("status") == "active" else "disabled"
    await request.app[SERVICES].events.webhooks.change(request[CALLER], webhook_id, {"status": status})
    return see_other(f"{_PAGE}/{webhook_id}")


async def test_webhook(request: web.Request) -> web.Response:
    """POST /console/webhooks/{webhook_id}/test: send a test event and show the receiver's response."""
    await read_form_once(request)
    webhook_id = path_id(request, "webhook_id")
    tested = await request.app[SERVICES].events.webhooks.test(request[CALLER], webhook_id)
    return await _shown(request, webhook_id, tested=tested)


async def rotate_secret(request: web.Request) -> web.Response:
    """POST /console/webhooks/{webhook_id}/rotate: a new signing secret, shown once."""
    await read_form_once(request)
    webhook_id = path_id(request, "webhook_id")
    rotated = await request.app[SERVICES].events.webhooks.rotate(request[CALLER], webhook_id)
    return await _shown(request, webhook_id, rotated=rotated)


async def resend(request: web.Request) -> web.Response:
    """POST /console/webhooks/{webhook_id}/deliveries/{event_id}/resend: deliver one event again."""
    await read_form_once(request)
    webhook_id, event_id = path_id(request, "webhook_id"), whole_number(request.match_info["event_id"])
    await request.app[SERVICES].events.webhooks.resend(request[CALLER], webhook_id, event_id or 0)
    return see_other(f"{_PAGE}/{webhook_id}")


async def delete_webhook(request: web.Request) -> web.Response:
    """POST /console/webhooks/{webhook_id}/delete: delete it with its deliveries."""
    await read_console_form(request)
    await request.app[SERVICES].events.webhooks.delete(request[CALLER], path_id(request, "webhook_id"))
    return see_other(_PAGE)


def _document_in(fields: Mapping[str, str]) -> dict[str, Any]:
    """The members of the body that the API takes, from the fields of the form."""
    texts = {name: fields.get(name, "").strip() for name in ("url", "description", "workspace_name", "entity")}
    connector = fields.get("connector_id") or None
    return {
        **{name: text or None for name, text in texts.items()},
        "url": texts["url"],
        "types": chosen_in(fields, _TYPE),
        "connector_id": connector if connector is None else id_of(connector) or connector,
        "include_record": "include_record" in fields,
    }


def _fields_of(webhook: WebhookView) -> Mapping[str, str]:
    """The fields of a form that has this subscription, as a browser would send them."""
    names = ("url", "description", "connector_id", "workspace_name", "entity")
    return {
        **{name: str(getattr(webhook, name) or "") for name in names},
        **{f"{_TYPE}{each}": "on" for each in webhook.types},
        **({"include_record": "on"} if webhook.include_record else {}),
    }


async def _choices(request: web.Request, fields: Mapping[str, str]) -> Mapping[str, Any]:
    """What the form offers."""
    access = request.app[SERVICES].connectors.access
    return {
        "fields": fields,
        "types": [each.value for each in EventType],
        "connectors": await connectors_to_choose(request, id_of(fields.get("connector_id"))),
        "workspaces": [each.name for each in await access.workspaces(request[CALLER], limit=_WORKSPACES)],
    }


async def _listed(
    request: web.Request, *, problem: GatewayError | None = None, fields: Mapping[str, str] | None = None
) -> web.Response:
    page = await request.app[SERVICES].events.webhooks.find(request[CALLER], request.query.get("cursor"), _LIMIT)
    return console_page(
        request,
        "webhooks.html",
        active="webhooks",
        status=422 if problem else 200,
        webhooks=page.data,
        older=page.next_cursor and urlencode({"cursor": page.next_cursor}),
        problem=problem,
        **await _choices(request, fields or {}),
    )


async def _shown(
    request: web.Request,
    webhook_id: UUID,
    *,
    secret: str | None = None,
    is_repeated: bool = False,
    rotated: RotatedSecretView | None = None,
    tested: WebhookTestView | None = None,
    problem: GatewayError | None = None,
    fields: Mapping[str, str] | None = None,
) -> web.Response:
    webhooks = request.app[SERVICES].events.webhooks
    webhook = await webhooks.get(request[CALLER], webhook_id)
    chosen = request.query.get("status", "")
    status = chosen if chosen in set(DeliveryStatus) else None
    before = whole_number(request.query.get("cursor", ""))
    page = await webhooks.deliveries(request[CALLER], webhook_id, status, before, _DELIVERIES)
    return console_page(
        request,
        "webhook.html",
        active="webhooks",
        status=422 if problem else 200,
        webhook=webhook,
        connector=(await connectors_by_id(request, [webhook.connector_id])).get(webhook.connector_id or ""),
        deliveries=page.data,
        filters=[("all", "?"), *((each.value, f"?status={each.value}") for each in DeliveryStatus)],
        chosen=status or "all",
        older=page.next_cursor and urlencode({"status": status or "", "cursor": page.next_cursor}),
        secret=secret,
        is_repeated=is_repeated,
        rotated=rotated,
        tested=tested,
        problem=problem,
        **await _choices(request, fields or _fields_of(webhook)),
    )
