"""The organization's clients, for those who administer it."""

from typing import ClassVar

from aiohttp import web
from pydantic import Field

from gateway.contract.gateway_state import ClientList, ClientView
from gateway.http.bodies import Body, path_id, read_body
from gateway.http.keys import CALLER, SERVICES
from gateway.identity.model import Client


class ChangeClient(Body):
    """What to change of a client."""

    EXAMPLES: ClassVar = {"urls": {"redirect_urls": ["https://app.example.com/connected"]}}

    redirect_urls: list[str] = Field(description="https URLs, in the place of those that it had")


def client_view(client: Client) -> ClientView:
    """The client as callers see it; secrets never come back."""
    return ClientView(
        str(client.id),
        client.name,
        client.is_person,
        sorted(client.scopes),
        list(client.redirect_urls),
        client.created_at,
        client.disabled_at,
    )


async def list_clients(request: web.Request) -> ClientList:
    """Programs and people that may act for the organization; secrets never come back."""
    return ClientList([client_view(client) for client in await request.app[SERVICES].clients.all(request[CALLER])])


async def change_client(request: web.Request) -> ClientView:
    """Replaces the client's redirect URLs. A client that belongs to several organizations answers 404."""
    body = await read_body(request, ChangeClient)
    clients, client_id = request.app[SERVICES].clients, path_id(request, "client_id")
    return client_view(await clients.change_redirect_urls(request[CALLER], client_id, body.redirect_urls))
