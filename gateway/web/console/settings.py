"""Clients, with their secrets and redirect URLs, and OAuth apps in the console."""

from uuid import UUID

from aiohttp import web
from pydantic import SecretStr

from gateway.access.identity.model import Scope
from gateway.errors import Conflict, InvalidParams
from gateway.web.bodies import path_id
from gateway.web.console.page import console_page, see_other
from gateway.web.console.session import read_console_form
from gateway.web.keys import ACCESS, CALLER, SERVICES

_PAGE = "/console/settings"


async def show_settings(request: web.Request) -> web.Response:
    """GET /console/settings."""
    return await _shown(request)


async def create_client(request: web.Request) -> web.Response:
    """POST /console/settings/clients: create a client of this organization; its secret is shown once."""
    fields = await read_console_form(request)
    scopes = [scope for scope in Scope if fields.get(scope.value) == "on"]
    try:
        created = await request.app[ACCESS].clients.create(request[CALLER], fields.get("name", "").strip(), scopes)
    except (InvalidParams, Conflict) as error:
        return await _shown(request, problem=error.detail)
    return await _shown(request, secret=created)


async def rotate_secret(request: web.Request) -> web.Response:
    """POST /console/settings/clients/{client_id}/secret: a new secret, shown once; the previous one stays valid."""
    await read_console_form(request)
    client_id = path_id(request, "client_id")
    secret = await request.app[ACCESS].clients.rotate_secret(request[CALLER], client_id)
    return await _shown(request, secret=(client_id, secret))


async def disable_client(request: web.Request) -> web.Response:
    """POST /console/settings/clients/{client_id}/disable: disable the client."""
    await read_console_form(request)
    try:
        await request.app[ACCESS].clients.disable(request[CALLER], path_id(request, "client_id"))
    except Conflict as error:
        return await _shown(request, problem=error.detail)
    return see_other(_PAGE)


async def change_redirect_urls(request: web.Request) -> web.Response:
    """POST /console/settings/clients/{client_id}/redirect-urls: replace them; the field has one per line."""
    urls = (await read_console_form(request)).get("redirect_urls", "").split()
    try:
        await request.app[ACCESS].clients.change_redirect_urls(request[CALLER], path_id(request, "client_id"), urls)
    except InvalidParams as error:
        return await _shown(request, problem=error.detail)
    return see_other(_PAGE)


async def put_app(request: web.Request) -> web.Response:
    """POST /console/settings/apps: set the organization's own OAuth app for a kind."""
    fields, services = await read_console_form(request), request.app[SERVICES]
    client_id, secret = fields.get("client_id", "").strip(), fields.get("client_secret", "").strip()
    try:
        if not all(0 < len(each) <= 1000 and each.isprintable() and each.isascii() for each in (client_id, secret)):
            raise InvalidParams("client id and client secret must each be 1 to 1000 printable ASCII characters")
        await services.connectors.oauth.apps.put(request[CALLER], fields.get("kind", ""), client_id, SecretStr(secret))
    except InvalidParams as error:
        return await _shown(request, problem=error.detail)
    return see_other(_PAGE)


async def delete_app(request: web.Request) -> web.Response:
    """POST /console/settings/apps/delete: delete the organization's own app, so that the platform's is used."""
    fields, services = await read_console_form(request), request.app[SERVICES]
    await services.connectors.oauth.apps.delete(request[CALLER], fields.get("kind", ""))
    return see_other(_PAGE)


async def _shown(
    request: web.Request, *, secret: tuple[UUID, str] | None = None, problem: str | None = None
) -> web.Response:
    services, organization_id = request.app[SERVICES], request[CALLER].organization_id
    clients = await request.app[ACCESS].clients.all(request[CALLER])
    return console_page(
        request,
        "settings.html",
        active="settings",
        status=422 if problem else 200,
        clients=clients,
        last_uses=await services.logs.audit.last_uses(organization_id, [client.id for client in clients]),
        own_id=request[CALLER].client_id,
        apps=await services.connectors.oauth.apps.find(request[CALLER].organization_id),
        names={kind.name: kind.spec.application for kind in services.catalog},
        kinds=[kind.spec for kind in services.catalog if kind.spec.oauth is not None],
        client_rate=f"{services.settings.client_rate:g}" if services.settings.client_rate else None,
        all_scopes=[scope.value for scope in Scope],
        secret=secret,
        problem=problem,
    )
