"""The organization's clients, for those who administer it."""

from typing import Any

from aiohttp import web
from pydantic import Field

from gateway.http.bodies import Body, path_id, read_body
from gateway.http.keys import CALLER, SERVICES
from gateway.http.responses import json_response
from gateway.identity.model import Client
from gateway.jobs.model import moment


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


async def list_clients(request: web.Request) -> web.Response:
    """GET /api/v1/clients: programs and people that may act for the organization."""
    clients = await request.app[SERVICES].clients.all(request[CALLER])
    return json_response({"data": [client_view(client) for client in clients]})


async def change_client(request: web.Request) -> web.Response:
    """PATCH /api/v1/clients/{id}: where consents may lead to."""
    body = await read_body(request, ChangeClient)
    clients, client_id = request.app[SERVICES].clients, path_id(request, "client_id")
    return json_response(
        client_view(await clients.change_redirect_urls(request[CALLER], client_id, body.redirect_urls))
    )
