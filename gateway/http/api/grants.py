"""What people let agents' hosts do, for those who administer an organization."""

from aiohttp import web
from pydantic import Field

from gateway.contract.oauth import GrantPage, GrantView
from gateway.http.bodies import QueryString, path_id, read_query
from gateway.http.keys import CALLER, SERVICES
from gateway.http.responses import cursor_of, read_time_cursor
from gateway.oauth_server.model import ListedGrant


class GrantQuery(QueryString):
    """Which page."""

    limit: int = Field(100, ge=1, le=1000, description="grants of a page")
    cursor: str | None = Field(None, description="`next_cursor` of the page before")


def grant_view(grant: ListedGrant) -> GrantView:
    """The grant as callers see it."""
    return GrantView(
        id=str(grant.id),
        client_id=str(grant.client_id),
        client_name=grant.client_name,
        host_id=grant.host_id,
        host_name=grant.host_name,
        scopes=list(grant.scopes),
        workspaces=None if grant.workspaces is None else list(grant.workspaces),
        resource=grant.resource,
        created_at=grant.created_at,
        expires_at=grant.expires_at,
    )


async def list_grants(request: web.Request) -> GrantPage:
    """The access that people gave to agents' hosts: client, host, scopes and workspaces; the newest first."""
    query, store = read_query(request, GrantQuery), request.app[SERVICES].authorization.store
    after = read_time_cursor(query.cursor)
    grants = await store.grants(request[CALLER].organization_id, after, query.limit + 1)
    page = grants[: query.limit]
    next_cursor = cursor_of((page[-1].created_at, page[-1].id)) if len(grants) > len(page) else None
    return GrantPage([grant_view(grant) for grant in page], next_cursor)


async def revoke_grant(request: web.Request) -> web.Response:
    """Revokes a grant and its tokens, in every process at once. The host may ask the person again."""
    authorization = request.app[SERVICES].authorization
    await authorization.revoke(request[CALLER], path_id(request, "grant_id"))
    return web.Response(status=204)
