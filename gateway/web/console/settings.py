"""The list of clients, the form for another one, and OAuth apps in the console."""

from collections.abc import Mapping
from uuid import UUID

from aiohttp import web
from pydantic import SecretStr

from gateway.access.identity.model import Scope, id_of
from gateway.errors import Conflict, IdempotencyMismatch, InvalidParams, NotFound
from gateway.web.console.page import console_page, see_other
from gateway.web.console.session import read_console_form
from gateway.web.keys import ACCESS, CALLER, SERVICES

_PAGE = "/console/settings"


async def show_settings(request: web.Request) -> web.Response:
    """GET /console/settings."""
    return await _shown(request)


async def create_client(request: web.Request) -> web.Response:
    """POST /console/settings/clients: create a client of this organization; its secret is shown once.

    A form that is sent again shows the client that it created.
    """
    fields = await read_console_form(request)
    scopes = [scope for scope in Scope if fields.get(scope.value) == "on"]
    try:
        client_id, secret = await request.app[ACCESS].clients.create(
            request[CALLER], fields.get("name", "").strip(), scopes, idempotency_key=id_of(fields.get("key"))
        )
    except IdempotencyMismatch:
        used = "this form has already created another client; press Create again to create this one too"
        return await _shown(request, problem=used, fields=fields)
    except (InvalidParams, Conflict, NotFound) as error:
        return await _shown(request, problem=error.detail, fields=fields)
    if secret is None:
        return await _shown(request, repeated=client_id)
    return await _shown(request, secret=(client_id, secret))


async def put_app(request: web.Request) -> web.Response:
    """POST /console/settings/apps: set the organization's own OAuth app for a kind."""
    fields, services = await read_console_form(request), request.app[SERVICES]
    client_id, secret = fields.get("client_id", "").strip(), fields.get("client_secret", "").strip()
    try:
        if not all(0 < len(each) <= 1000 and each.isprintable() and each.isascii() for each in (client_id, secret)):
            raise InvalidParams("client id and client secret must each be 1 to 1000 printable ASCII characters")
        await services.connectors.oauth.apps.put(request[CALLER], fields.get("kind", ""), client_id, SecretStr(secret))
    except InvalidParams as error:
        return await _shown(request, problem=error.detail, app_fields=fields)
    return see_other(_PAGE)


async def delete_app(request: web.Request) -> web.Response:
    """POST /console/settings/apps/delete: delete the organization's own app, so that the platform's is used."""
    fields, services = await read_console_form(request), request.app[SERVICES]
    await services.connectors.oauth.apps.delete(request[CALLER], fields.get("kind", ""))
    return see_other(_PAGE)


async def _shown(
    request: web.Request,
    *,
    secret: tuple[UUID, str] | None = None,
    repeated: UUID | None = None,
    problem: str | None = None,
    fields: Mapping[str, str] | None = None,
    app_fields: Mapping[str, str] | None = None,
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
        apps=await services.connectors.oauth.apps.find(request[CALLER].organization_id),
        names={kind.name: kind.spec.application for kind in services.catalog},
        kinds=[kind.spec for kind in services.catalog if kind.spec.oauth is not None],
        client_rate=f"{services.settings.client_rate:g}" if services.settings.client_rate else None,
        all_scopes=[scope.value for scope in Scope],
        secret=secret,
        repeated=repeated,
        problem=problem,
        fields={Scope.READ.value: "on"} if fields is None else fields,
        app_fields=app_fields or {},
    )
