"""Clients, their secrets and redirect URLs, and OAuth apps, in the console."""

from aiohttp import web
from pydantic import SecretStr

from gateway.errors import InvalidParams
from gateway.http.api.clients import change_redirect_urls as change
from gateway.http.api.clients import client_of, clients_of
from gateway.http.console.page import console_page, see_other
from gateway.http.console.session import read_console_form
from gateway.http.keys import AUDIT, CALLER, SERVICES
from gateway.identity.model import Scope
from gateway.identity.tokens import hashed, new_secret
from gateway.oauth_client.consent_request import require_oauth

_PAGE = "/console/settings"


async def show_settings(request: web.Request) -> web.Response:
    """GET /console/settings."""
    return await _shown(request)


async def create_client(request: web.Request) -> web.Response:
    """POST /console/settings/clients: a client of this organization; its secret is shown once."""
    fields, services, caller = await read_console_form(request), request.app[SERVICES], request[CALLER]
    name = fields.get("name", "").strip()
    scopes = [scope.value for scope in Scope if fields.get(scope.value) == "on"]
    if not name or not scopes:
        return await _shown(request, problem="Give the client a name and at least one scope.")
    secret = new_secret()
    client_id = await services.identity.create_client(name, [caller.organization_id], hashed(secret), scopes)
    request[AUDIT].target = str(client_id)
    return await _shown(request, secret=(str(client_id), secret))


async def rotate_secret(request: web.Request) -> web.Response:
    """POST /console/settings/clients/{client_id}/secret: another secret, shown once; the one before it still works."""
    await read_console_form(request)
    client, secret = await client_of(request), new_secret()
    await request.app[SERVICES].identity.rotate_secret(client.id, hashed(secret))
    return await _shown(request, secret=(str(client.id), secret))


async def change_redirect_urls(request: web.Request) -> web.Response:
    """POST /console/settings/clients/{client_id}/redirect-urls: one a line, in the place of those that it had."""
    urls = (await read_console_form(request)).get("redirect_urls", "").split()
    try:
        await change(request, urls)
    except InvalidParams as error:
        return await _shown(request, problem=error.detail)
    return see_other(_PAGE)


async def put_app(request: web.Request) -> web.Response:
    """POST /console/settings/apps: the organization's own OAuth app for a kind."""
    fields, services = await read_console_form(request), request.app[SERVICES]
    spec = services.catalog.kind(fields.get("kind", "")).spec
    client_id, secret = fields.get("client_id", "").strip(), fields.get("client_secret", "").strip()
    try:
        require_oauth(spec)
        if not (client_id and secret and (client_id + secret).isprintable() and (client_id + secret).isascii()):
            raise InvalidParams("client id and client secret are printable ASCII, and both are needed")
    except InvalidParams as error:
        return await _shown(request, problem=error.detail)
    await services.oauth.apps.put(request[CALLER], spec.kind, client_id, SecretStr(secret))
    return see_other(_PAGE)


async def delete_app(request: web.Request) -> web.Response:
    """POST /console/settings/apps/delete: the platform's app again."""
    fields, services = await read_console_form(request), request.app[SERVICES]
    kind = services.catalog.kind(fields.get("kind", "")).name
    await services.oauth.apps.delete(request[CALLER], kind)
    return see_other(_PAGE)


async def _shown(
    request: web.Request, *, secret: tuple[str, str] | None = None, problem: str | None = None
) -> web.Response:
    services = request.app[SERVICES]
    return console_page(
        request,
        "settings.html",
        active="settings",
        status=422 if problem else 200,
        clients=await clients_of(request),
        apps=await services.oauth.apps.find(request[CALLER].organization_id),
        kinds=[kind.spec for kind in services.catalog if kind.spec.oauth is not None],
        all_scopes=[scope.value for scope in Scope],
        secret=secret,
        problem=problem,
    )
