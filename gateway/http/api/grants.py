"""What people let agents' hosts do, for those who administer an organization."""

from typing import Any

from aiohttp import web
from pydantic import Field

from gateway.http.bodies import QueryString, path_id, read_query
from gateway.http.keys import CALLER, SERVICES
from gateway.http.responses import cursor_of, json_response, read_time_cursor
from gateway.jobs.model import moment
from gateway.oauth_server.model import ListedGrant


class GrantQuery(QueryString):
    """Which page."""

    limit: int = Field(100, ge=1, le=1000, description="grants of a page")
    cursor: str | None = Field(None, description="`next_cursor` of the page before")


def grant_view(grant: ListedGrant) -> dict[str, Any]:
    """The grant as callers see it."""
    return {
        "id": str(grant.id),
        "client_id": str(grant.client_id),
        "client_name": grant.client_name,
        "host_id": grant.host_id,
        "host_name": grant.host_name,
        "scopes": list(grant.scopes),
        "workspaces": None if grant.workspaces is None else list(grant.workspaces),
        "resource": grant.resource,
        "created_at": moment(grant.created_at),
        "expires_at": moment(grant.expires_at),
    }


async def list_grants(request: web.Request) -> web.Response:
    """GET /api/v1/grants: which hosts may act for whom, the newest first."""
    query, store = read_query(request, GrantQuery), request.app[SERVICES].authorization.store
    after = read_time_cursor(query.cursor)
    grants = await store.grants(request[CALLER].organization_id, after, query.limit + 1)
    page = grants[: query.limit]
    next_cursor = cursor_of((page[-1].created_at, page[-1].id)) if len(grants) > len(page) else None
    return json_response({"data": [grant_view(grant) for grant in page], "next_cursor": next_cursor})


async def revoke_grant(request: web.Request) -> web.Response:
    """DELETE /api/v1/grants/{id}: the host is out at once."""
    authorization = request.app[SERVICES].authorization
    await authorization.revoke(request[CALLER], path_id(request, "grant_id"))
    return web.Response(status=204)
