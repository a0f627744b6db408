"""Webhooks in the console: state, deliveries and actions."""

from urllib.parse import urlencode

from aiohttp import web

from gateway.contract.events import DeliveryStatus, RotatedSecretView, WebhookTestView
from gateway.web.bodies import path_id, whole_number
from gateway.web.console.page import connectors_by_id, console_page, see_other
from gateway.web.console.session import read_console_form
from gateway.web.keys import CALLER, SERVICES

_PAGE = "/console/webhooks"
#: maximum webhooks of a page
_LIMIT = 50
#: maximum deliveries of a page
_DELIVERIES = 25


async def list_webhooks(request: web.Request) -> web.Response:
    """GET /console/webhooks."""
    page = await request.app[SERVICES].events.webhooks.find(request[CALLER], request.query.get("cursor"), _LIMIT)
    older = page.next_cursor and urlencode({"cursor": page.next_cursor})
    return console_page(request, "webhooks.html", active="webhooks", webhooks=page.data, older=older)


async def show_webhook(request: web.Request) -> web.Response:
    """GET /console/webhooks/{webhook_id}."""
    return await _shown(request)


async def change_webhook(request: web.Request) -> web.Response:
    """POST /console/webhooks/{webhook_id}: pause it, or continue after the last delivered event."""
    fields, webhook_id = await read_console_form(request), path_id(request, "webhook_id")
    status = "active" if fields.get("status") == "active" else "disabled"
    await request.app[SERVICES].events.webhooks.change(request[CALLER], webhook_id, {"status": status})
    return see_other(f"{_PAGE}/{webhook_id}")


async def test_webhook(request: web.Request) -> web.Response:
    """POST /console/webhooks/{webhook_id}/test: send a test event and show the receiver's response."""
    await read_console_form(request)
    tested = await request.app[SERVICES].events.webhooks.test(request[CALLER], path_id(request, "webhook_id"))
    return await _shown(request, tested=tested)


async def rotate_secret(request: web.Request) -> web.Response:
    """POST /console/webhooks/{webhook_id}/rotate: a new signing secret, shown once."""
    await read_console_form(request)
    rotated = await request.app[SERVICES].events.webhooks.rotate(request[CALLER], path_id(request, "webhook_id"))
    return await _shown(request, rotated=rotated)


async def resend(request: web.Request) -> web.Response:
    """POST /console/webhooks/{webhook_id}/deliveries/{event_id}/resend: deliver one event again."""
    await read_console_form(request)
    webhook_id, event_id = path_id(request, "webhook_id"), whole_number(request.match_info["event_id"])
    await request.app[SERVICES].events.webhooks.resend(request[CALLER], webhook_id, event_id or 0)
    return see_other(f"{_PAGE}/{webhook_id}")


async def delete_webhook(request: web.Request) -> web.Response:
    """POST /console/webhooks/{webhook_id}/delete: delete it with its deliveries."""
    await read_console_form(request)
    await request.app[SERVICES].events.webhooks.delete(request[CALLER], path_id(request, "webhook_id"))
    return see_other(_PAGE)


async def _shown(
    request: web.Request, *, rotated: RotatedSecretView | None = None, tested: WebhookTestView | None = None
) -> web.Response:
    webhooks, webhook_id = request.app[SERVICES].events.webhooks, path_id(request, "webhook_id")
    webhook = await webhooks.get(request[CALLER], webhook_id)
    chosen = request.query.get("status", "")
    status = chosen if chosen in set(DeliveryStatus) else None
    before = whole_number(request.query.get("cursor", ""))
    page = await webhooks.deliveries(request[CALLER], webhook_id, status, before, _DELIVERIES)
    return console_page(
        request,
        "webhook.html",
        active="webhooks",
        webhook=webhook,
        connector=(await connectors_by_id(request, [webhook.connector_id])).get(webhook.connector_id or ""),
        deliveries=page.data,
        filters=[("all", "?"), *((each.value, f"?status={each.value}") for each in DeliveryStatus)],
        chosen=status or "all",
        older=page.next_cursor and urlencode({"status": status or "", "cursor": page.next_cursor}),
        rotated=rotated,
        tested=tested,
    )
