"""The grants of people to agents' hosts, for administrators of an organization."""

from aiohttp import web
from pydantic import Field

from gateway.access.identity.model import Scope
from gateway.contract.oauth import GrantPage
from gateway.web.bodies import QueryString, path_id, read_query
from gateway.web.keys import ACCESS, CALLER
from gateway.web.route import Route


class GrantQuery(QueryString):
    """The page of grants."""

    limit: int = Field(100, ge=1, le=1000, description="maximum grants of a page")
    cursor: str | None = Field(None, description="`next_cursor` of the page before")


async def list_grants(request: web.Request) -> GrantPage:
    """The access that people gave to agents' hosts: client, host, scopes and workspaces; the newest first."""
    query = read_query(request, GrantQuery)
    return await request.app[ACCESS].authorization.grants(request[CALLER], query.cursor, query.limit)


async def revoke_grant(request: web.Request) -> web.Response:
    """Revokes a grant and its tokens, in every process at once. The host may ask the person again."""
    authorization = request.app[ACCESS].authorization
    await authorization.revoke(request[CALLER], path_id(request, "grant_id"))
    return web.Response(status=204)


#: the routes of these handlers, in the order in which they are tried
ROUTES: tuple[Route, ...] = (
    Route(
        "GET",
        "/api/v1/grants",
        list_grants,
        "List the access that people gave to agents' hosts, the newest first",
        "Agents",
        query=GrantQuery,
        response=GrantPage,
        scope=Scope.ADMIN,
    ),
    Route(
        "DELETE",
        "/api/v1/grants/{grant_id}",
        revoke_grant,
        "Revoke a grant of a host and all its tokens",
        "Agents",
        answers={204: "The grant is revoked"},
        scope=Scope.ADMIN,
        audit="agent.revoke",
    ),
)
