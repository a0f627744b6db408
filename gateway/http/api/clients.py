"""The organization's clients, for those who administer it."""

from typing import Any

from aiohttp import web
from pydantic import Field

from gateway.errors import FieldError, InvalidParams, NotFound
from gateway.http.bodies import Body, path_id, read_body
from gateway.http.keys import CALLER, SERVICES
from gateway.http.responses import json_response
from gateway.identity.model import Client
from gateway.jobs.model import moment
from gateway.oauth_client.callback import redirect_error

_MAX_URLS = 50


class ChangeClient(Body):
    """What to change of a client."""

    redirect_urls: list[str] = Field(description="https URLs, in the place of those that it had")


def client_view(client: Client) -> dict[str, Any]:
    """The client as callers see it; secrets never come back."""
    return {
        "id": str(client.id),
        "name": client.name,
        "is_person": client.is_person,
        "scopes": sorted(client.scopes),
        "redirect_urls": list(client.redirect_urls),
        "created_at": moment(client.created_at),
        "disabled_at": moment(client.disabled_at),
    }


async def clients_of(request: web.Request) -> list[Client]:
    """Those that may act for the caller's organization."""
    organization_id = request[CALLER].organization_id
    clients = await request.app[SERVICES].identity.clients()
    return [client for client in clients if organization_id in client.organization_ids]


async def client_of(request: web.Request) -> Client:
    """The client of the path, of this organization alone: nobody changes what others rely on. Raises NotFound."""
    client_id = path_id(request, "client_id")
    client = next((each for each in await clients_of(request) if each.id == client_id), None)
    if client is None or len(client.organization_ids) > 1:
        raise NotFound("there is no such client of this organization alone")
    return client


async def change_redirect_urls(request: web.Request, urls: list[str]) -> None:
    """Put these in the place of those that the client had; raises NotFound and InvalidParams."""
    services, client = request.app[SERVICES], await client_of(request)
    if len(urls) > _MAX_URLS:
        message = f"redirect_urls are more than {_MAX_URLS}"
        raise InvalidParams(faults=[FieldError("/redirect_urls", "redirect_urls", "too_many", message)])
    faults = [
        FieldError(f"/redirect_urls/{index}", f"redirect_urls.{index}", fault.code, f"{url}: {fault.message}")
        for index, url in enumerate(urls)
        if (fault := redirect_error(url, urls, is_embedded=services.settings.embedded)) is not None
    ]
    if faults:
        raise InvalidParams(faults=faults)
    await services.identity.change_redirect_urls(client.id, urls)


async def list_clients(request: web.Request) -> web.Response:
    """GET /api/v1/clients: programs and people that may act for the organization."""
    return json_response({"data": [client_view(client) for client in await clients_of(request)]})


async def change_client(request: web.Request) -> web.Response:
    """PATCH /api/v1/clients/{id}: where consents may lead to."""
    body = await read_body(request, ChangeClient)
    await change_redirect_urls(request, body.redirect_urls)
    return json_response(client_view(await client_of(request)))
