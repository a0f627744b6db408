"""The organization's clients, for administrators."""

from collections.abc import Sequence
from typing import ClassVar
from uuid import UUID

from aiohttp import web
from msgspec.structs import asdict
from pydantic import Field

from gateway.access.identity.model import Client, Scope
from gateway.contract.gateway_state import ChangedClientView, ClientList, ClientView
from gateway.web.bodies import Body, Name, path_id, read_body
from gateway.web.keys import ACCESS, CALLER, SERVICES
from gateway.web.route import Route


class ChangeClient(Body):
    """Changes of a client."""

    EXAMPLES: ClassVar = {
        "urls": {"redirect_urls": ["https://app.example.com/connected"]},
        "sessions": {"delegate_for": ["support"]},
        "callbacks": {"callback_urls": ["https://app.example.com/jobs"]},
    }

    redirect_urls: list[str] = Field([], max_length=100, description="https URLs, which replace the current ones")
    delegate_for: list[Name] = Field(
        [],
        max_length=100,
        description="the groups for whose members it may open sessions, which replace the current ones",
    )
    callback_urls: list[str] = Field(
        [],
        max_length=100,
        description="receivers that `callback_url` of its calls may name; they replace the current ones",
    )


def client_view(client: Client, callback_urls: Sequence[str] = ()) -> ClientView:
    """The client for the response, without its secrets."""
    return ClientView(
        id=str(client.id),
        name=client.name,
        is_person=client.is_person,
        scopes=sorted(client.scopes),
        redirect_urls=list(client.redirect_urls),
        callback_urls=list(callback_urls),
        delegate_for=list(client.delegate_for),
        created_at=client.created_at,
        disabled_at=client.disabled_at,
    )


async def list_clients(request: web.Request) -> ClientList:
    """Programs that may act for the organization, and its first thousand people: `GET /api/v1/people` lists all.
    Secrets are never returned.
    """
    services, caller = request.app[SERVICES], request[CALLER]
    callback_urls = await services.events.webhooks.callback_urls(caller)
    return ClientList(
        [client_view(each, callback_urls.get(each.id, ())) for each in await request.app[ACCESS].clients.all(caller)]
    )


async def change_client(request: web.Request) -> ChangedClientView:
    """Replaces the client's redirect URLs, callback URLs, or the groups of `delegate_for`. With the first callback URL
    the response has `webhook_secret`, which signs the client's callbacks. 404 for a client that belongs to several
    organizations.
    """
    body = await read_body(request, ChangeClient)
    return await changed(request, path_id(request, "client_id"), body)


async def changed(request: web.Request, client_id: UUID, body: ChangeClient) -> ChangedClientView:
    """The client with the members of the body that were sent; raises NotFound, InvalidParams and InsufficientScope."""
    services, caller, secret = request.app[SERVICES], request[CALLER], None
    client = await request.app[ACCESS].clients.own(caller, client_id)
    if "redirect_urls" in body.model_fields_set:
        client = await request.app[ACCESS].clients.change_redirect_urls(caller, client_id, body.redirect_urls)
    if "delegate_for" in body.model_fields_set:
        client = await request.app[ACCESS].clients.change_delegate_for(caller, client_id, body.delegate_for)
    if "callback_urls" in body.model_fields_set:
        secret = await services.events.webhooks.set_callback_urls(caller, client_id, body.callback_urls)
    callback_urls = (await services.events.webhooks.callback_urls(caller)).get(client_id, ())
    return ChangedClientView(**asdict(client_view(client, callback_urls)), webhook_secret=secret)


#: the routes of these handlers, in the order in which they are tried
ROUTES: tuple[Route, ...] = (
    Route(
        "GET",
        "/api/v1/clients",
        list_clients,
        "List the organization's clients, programs and people",
        "Clients",
        response=ClientList,
        scope=Scope.ADMIN,
    ),
    Route(
        "PATCH",
        "/api/v1/clients/{client_id}",
        change_client,
        "Change a client's redirect URLs, callback URLs and groups",
        "Clients",
        body=ChangeClient,
        response=ChangedClientView,
        scope=Scope.ADMIN,
        audit="client.update",
    ),
)
