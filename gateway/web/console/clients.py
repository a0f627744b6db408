"""One client in the console: its rights, URLs, groups, budgets and secrets, and its end."""

from collections.abc import Mapping
from uuid import UUID

from aiohttp import web

from gateway.access.identity.model import Client
from gateway.errors import Conflict, GatewayError, InsufficientScope, InvalidParams
from gateway.web.api.clients import ChangeClient, changed
from gateway.web.bodies import path_id, validated
from gateway.web.console.page import console_page, see_other
from gateway.web.console.plots import plots_of
from gateway.web.console.rights import lines_in
from gateway.web.console.session import read_console_form, read_form_once
from gateway.web.keys import ACCESS, CALLER, SERVICES

_PAGE = "/console/settings/clients"
#: errors that are shown at the form
_REFUSED = (InvalidParams, Conflict, InsufficientScope)
#: members that have one value per line
_LISTS = ("redirect_urls", "callback_urls", "delegate_for")


async def show_client(request: web.Request) -> web.Response:
    """GET /console/settings/clients/{client_id}."""
    return await _shown(request)


async def change_client(request: web.Request) -> web.Response:
    """POST /console/settings/clients/{client_id}: replace the lists that changed; the first callback URL has a secret,
    which is shown once.
    """
    fields, client_id = await read_console_form(request), path_id(request, "client_id")
    before = _fields_of(*await _client(request))
    sent = {name: lines_in(fields, name) for name in _LISTS if lines_in(fields, name) != lines_in(before, name)}
    try:
        view = await changed(request, client_id, validated(ChangeClient, sent))
    except _REFUSED as error:
        return await _shown(request, problem=error, fields=fields)
    if view.webhook_secret is not None:
        return await _shown(request, webhook_secret=view.webhook_secret)
    return see_other(f"{_PAGE}/{client_id}")


async def rotate_secret(request: web.Request) -> web.Response:
    """POST /console/settings/clients/{client_id}/secret: a new secret, shown once; the previous one stays valid."""
    await read_form_once(request)
    secret = await request.app[ACCESS].clients.rotate_secret(request[CALLER], path_id(request, "client_id"))
    return await _shown(request, secret=secret)


async def disable_client(request: web.Request) -> web.Response:
    """POST /console/settings/clients/{client_id}/disable: disable the client for ever."""
    await read_console_form(request)
    try:
        await request.app[ACCESS].clients.disable(request[CALLER], path_id(request, "client_id"))
    except Conflict as error:
        return await _shown(request, problem=error)
    return see_other("/console/settings")


async def _client(request: web.Request) -> tuple[Client, list[str]]:
    """The client and its callback URLs; raises NotFound."""
    client_id = path_id(request, "client_id")
    client = await request.app[ACCESS].clients.own(request[CALLER], client_id)
    callback_urls = await request.app[SERVICES].events.webhooks.callback_urls(request[CALLER])
    return client, list(callback_urls.get(client_id, ()))


def _fields_of(client: Client, callback_urls: list[str]) -> Mapping[str, str]:
    """The fields of a form that has these lists, as a browser would send them."""
    lists = (client.redirect_urls, callback_urls, client.delegate_for)
    return {name: "\n".join(values) for name, values in zip(_LISTS, lists, strict=True)}


async def _shown(
    request: web.Request,
    *,
    secret: str | None = None,
    webhook_secret: str | None = None,
    problem: GatewayError | None = None,
    fields: Mapping[str, str] | None = None,
) -> web.Response:
    services, caller = request.app[SERVICES], request[CALLER]
    client, callback_urls = await _client(request)
    client_id: UUID = client.id
    budgets = (await services.policy.budgets.all(caller)).data
    return console_page(
        request,
        "client.html",
        active="settings",
        status=422 if problem else 200,
        **await plots_of(request, "client", client_id),
        shown=client,
        last_used=(await services.logs.audit.last_uses(caller.organization_id, [client_id])).get(client_id),
        is_own=client_id == caller.client_id,
        budgets=[each for each in budgets if each.client_id == str(client_id)],
        fields=fields or _fields_of(client, callback_urls),
        secret=secret,
        webhook_secret=webhook_secret,
        problem=problem,
    )
