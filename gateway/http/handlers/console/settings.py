"""Clients, their secrets and redirect URLs, and OAuth apps, in the console."""

from aiohttp import web
from pydantic import SecretStr

from gateway.errors import InvalidParams, NotFound
from gateway.http.bodies import path_id
from gateway.http.console_session import read_console_form
from gateway.http.handlers.console.page import console_page, see_other
from gateway.http.keys import AUDIT, CALLER, SERVICES
from gateway.identity.model import Client, Scope
from gateway.identity.tokens import hashed, new_secret
from gateway.oauth.authorization_request import require_oauth

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
    client, secret = await _client(request), new_secret()
    await request.app[SERVICES].identity.rotate_secret(client.id, hashed(secret))
    return await _shown(request, secret=(str(client.id), secret))


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
    await services.oauth.apps.put(request[CALLER].organization_id, spec.kind, client_id, SecretStr(secret))
    request[AUDIT].target = spec.kind
    return see_other(_PAGE)


async def delete_app(request: web.Request) -> web.Response:
    """POST /console/settings/apps/delete: the platform's app again."""
    fields, services = await read_console_form(request), request.app[SERVICES]
    kind = services.catalog.kind(fields.get("kind", "")).name
    await services.oauth.apps.delete(request[CALLER].organization_id, kind)
    request[AUDIT].target = kind
    return see_other(_PAGE)


async def _client(request: web.Request) -> Client:
    """A client of this organization alone; raises NotFound."""
    client_id = path_id(request, "client_id")
    request[AUDIT].target = str(client_id)
    found = next((each for each in await _clients(request) if each.id == client_id), None)
    if found is None or len(found.organization_ids) > 1:
        raise NotFound("there is no such client of this organization alone")
    return found


async def _clients(request: web.Request) -> list[Client]:
    organization_id = request[CALLER].organization_id
    return [
        client
        for client in await request.app[SERVICES].identity.clients()
        if organization_id in client.organization_ids
    ]


async def _shown(
    request: web.Request, *, secret: tuple[str, str] | None = None, problem: str | None = None
) -> web.Response:
    services = request.app[SERVICES]
    return console_page(
        request,
        "settings.html",
        active="settings",
        status=422 if problem else 200,
        clients=await _clients(request),
        apps=await services.oauth.apps.find(request[CALLER].organization_id),
        kinds=[kind.spec for kind in services.catalog if kind.spec.oauth is not None],
        all_scopes=[scope.value for scope in Scope],
        secret=secret,
        problem=problem,
    )
